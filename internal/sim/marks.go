package sim

import (
	"fmt"
	"strings"
)

// Mark is a rare event. A plan lists the marks that must occur: without them
// its exploration proves nothing.
type Mark uint8

// The marks.
const (
	MarkTakeover          Mark = iota // an expired attempt was taken over
	MarkRequeue                       // an expired attempt was put back
	MarkDoubt                         // a record went into doubt
	MarkHeal                          // evidence settled a record
	MarkSettle                        // a late leader settled a doubt
	MarkResolve                       // an operator resolved a doubt
	MarkRelease                       // an attempt was released
	MarkFail                          // a failure was kept
	MarkVoid                          // an inline commit without an answer was ruled out
	MarkReleasedTainted               // a leader released an attempt with unknown outcome
	MarkAborted                       // a commit was certainly rolled back
	MarkConflict                      // the database aborted a transaction because of a conflict
	MarkRolledBack                    // the change of a transaction was not applied
	MarkZombie                        // the same, after a takeover
	MarkAlreadyApplied                // a repeated change had been applied before
	MarkBusy                          // a change or a transaction found the record held
	MarkCrash                         // an actor died
	MarkRenewed                       // a leader renewed an expired lease
	MarkArrived                       // a late request arrived after all
	MarkLateCommit                    // a commit without an answer happened
	MarkLateAbort                     // a commit without an answer did not
	MarkUnknownOK                     // a caller with such a commit received ok
	MarkUnknownReleased               // or that nothing happened
	MarkFenceHeld                     // a receiver refused an attempt below its fence
	MarkSecondAnswer                  // a receiver gave its first answer again
	MarkReplay                        // a caller received a stored outcome
	MarkMismatch                      // a request under another request's key was rejected
	MarkPurged                        // a record was purged after its retention
	MarkDelay                         // a delay passed
	MarkTokenUnknown                  // a caller received that its token is unknown
	MarkTokenExpired                  // or that it is expired
	MarkTokenLate                     // an attempt was taken over after its token's time
	MarkQueued                        // a call was enqueued
	MarkQueuedAlready                 // it waited already, or more
	MarkErrorsExhausted               // the last try ended in an error
	MarkCrashesExhausted              // too many attempts ended without an outcome
	MarkRedrive                       // an operator redrove a failed record
	MarkRedriveDoubt                  // an operator redrove a record in doubt
	MarkCancelWaiting                 // a pending record was cancelled
	MarkCancelRunning                 // a running attempt was cancelled
	MarkCompletedTogether             // attempts ended in one request
	MarkLostClaimReleased             // a claim without a reply was released
	MarkLeaseLost                     // a worker learned from a renewal that it had lost its lease
	MarkBatched                       // changes of several callers were sent in one batch
	MarkJoined                        // changes joined a running batch
	MarkJoinedTooLate                 // changes arrived too late to join
	MarkJoinedLost                    // joined changes had no reply
	MarkJoinedCanceled                // a caller that joined canceled meanwhile
	MarkCanceled                      // a caller canceled
	MarkClaimUndone                   // an abandoned claim was released
	MarkCacheHit                      // a retry was answered from the cache
	MarkCacheExpired                  // a retry read the record, because the cache entry had expired
	MarkSettledByWorker               // a sweeper and a worker settled it
	MarkSettledByRetry                // a retry after the end of all actors settled it
	MarkSettledByOperator             // an operator had to settle it
	marks
)

// String says what happened.
func (m Mark) String() string {
	return [marks]string{
		"takeover", "requeue", "doubt", "heal", "settle", "resolve", "release", "fail", "void", "give up",
		"aborted", "conflict", "rolled back", "zombie rolled back", "lost reply echoed", "busy", "crash", "beat", "late request arrived",
		"late commit", "late abort", "unknown commit, then ok", "unknown commit, then no", "fence held", "second answer",
		"replay", "mismatch", "purged", "delay", "token unknown", "token expired", "token taken over late", "queued", "queued already", "errors exhausted", "crashes exhausted", "redrive", "redrive of a doubt",
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
