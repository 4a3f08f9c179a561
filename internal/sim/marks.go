package sim

import (
	"fmt"
	"strings"
)

// Mark is a rare event. A plan says which it must have seen: an exploration in
// which they never happened proves nothing.
type Mark uint8

// The marks.
const (
	MarkTakeover          Mark = iota // an expired attempt was taken over
	MarkRequeue                       // an expired attempt was put back
	MarkDoubt                         // a record went into doubt
	MarkHeal                          // evidence settled a record
	MarkSettle                        // a late leader settled a doubt
	MarkResolve                       // a person resolved a doubt
	MarkRelease                       // an attempt was given back
	MarkFail                          // a failure was kept
	MarkVoid                          // an inline commit without an answer was ruled out
	MarkReleasedTainted               // a leader that did not know put its attempt back
	MarkAborted                       // a commit was certainly rolled back
	MarkConflict                      // a transaction was given up for others
	MarkRolledBack                    // a transaction found its change not in force
	MarkZombie                        // one that had been taken over did
	MarkAlreadyApplied                // a change asked for again was in force already
	MarkBusy                          // a transaction was told that the record is held
	MarkCrash                         // an actor died
	MarkRenewed                       // a leader renewed a lease that was over
	MarkArrived                       // a late request arrived after all
	MarkLateCommit                    // a commit without an answer happened
	MarkLateAbort                     // a commit without an answer did not
	MarkUnknownOK                     // a caller with such a commit was told ok
	MarkUnknownReleased               // or that nothing happened
	MarkFenceHeld                     // a receiver refused an attempt below its fence
	MarkSecondAnswer                  // a receiver gave its first answer again
	MarkReplay                        // a caller was told what an earlier one did
	MarkMismatch                      // a key was refused for another request
	MarkPurged                        // a record went whose retention was over
	MarkDelay                         // a delay passed
	MarkQueued                        // a call was enqueued
	MarkQueuedAlready                 // it waited already, or more
	MarkErrorsExhausted               // the last try ended in an error
	MarkCrashesExhausted              // too many tries ended without a word
	MarkRedrive                       // a person sent a failed record round again
	MarkRedriveDoubt                  // an operator redrove a record in doubt
	MarkCancelWaiting                 // what waited was cancelled
	MarkCancelRunning                 // what ran was
	MarkCompletedTogether             // attempts ended in one asking
	MarkLostClaimReleased             // a claim without an answer was given back
	MarkLeaseLost                     // a worker learned from a beat that it lost
	MarkBatched                       // changes of several were asked for together
	MarkJoined                        // changes joined others that were being written
	MarkJoinedTooLate                 // or came too late to
	MarkJoinedLost                    // what joined had no answer
	MarkJoinedCanceled                // who joined gave up meanwhile
	MarkCanceled                      // a caller gave up
	MarkClaimUndone                   // a claim that nobody waited for was given back
	MarkCacheHit                      // a repeat was answered from memory
	MarkCacheExpired                  // a repeat was answered anew, because memory was too old
	MarkSettledByWorker               // a sweeper and a worker settled it
	MarkSettledByRetry                // a retry after everybody was gone settled it
	MarkSettledByOperator             // it needed a person
	marks
)

// String says what happened.
func (m Mark) String() string {
	return [marks]string{
		"takeover", "requeue", "doubt", "heal", "settle", "resolve", "release", "fail", "void", "give up",
		"aborted", "conflict", "rolled back", "zombie rolled back", "lost reply echoed", "busy", "crash", "beat", "late request arrived",
		"late commit", "late abort", "ambiguous told ok", "ambiguous told no", "fence held", "second answer",
		"replay", "mismatch", "purged", "delay", "queued", "queued already", "errors exhausted", "crashes exhausted", "redrive", "redrive of a doubt",
		"cancelled waiting", "cancelled running", "ended together", "lost claim given back", "lease lost", "flushed together", "joined others", "too late to join", "joined and lost", "joined and gave up", "gave up", "claim undone", "remembered", "forgotten", "settled by worker", "settled by retry", "settled by person",
	}[m]
}

// AllMarks lists them all.
func AllMarks() []Mark {
	all := make([]Mark, marks)
	for i := range all {
		all[i] = Mark(i)
	}
	return all
}

// Marks counts events over all runs of an exploration.
type Marks [marks]int

func (w *world) mark(m Mark) { w.marks[m]++ }

// Missing lists which of must never happened.
func (m *Marks) Missing(require []Mark) []Mark {
	var missing []Mark
	for _, x := range require {
		if m[x] == 0 {
			missing = append(missing, x)
		}
	}
	return missing
}

// String lists those that happened, and how often.
func (m *Marks) String() string {
	var b strings.Builder
	for i, n := range m {
		if n > 0 {
			fmt.Fprintf(&b, ", %v %d", Mark(i), n)
		}
	}
	return strings.TrimPrefix(b.String(), ", ")
}
