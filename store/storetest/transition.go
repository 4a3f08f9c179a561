package storetest

import (
	"fmt"
	"time"

	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// transitionChecks make every transition of the protocol's table with Swap.
func transitionChecks() []storeCheck {
	var checks []storeCheck
	for _, tr := range protocol.Transitions() {
		checks = append(checks, storeCheck{transitionName(tr), func(r *harness) { r.checkTransition(tr) }})
	}
	return checks
}

// transitionTxChecks make them as the last change of a transaction.
func transitionTxChecks[Tx any]() []txCheck[Tx] {
	var checks []txCheck[Tx]
	for _, tr := range protocol.Transitions() {
		if canEndTransaction(tr) {
			checks = append(checks, txCheck[Tx]{transitionName(tr), func(r *txHarness[Tx]) { r.checkTransitionTx(tr) }})
		}
	}
	return checks
}

func transitionName(tr protocol.Transition) string {
	return fmt.Sprintf("%s-%v-%v", tr.Step, tr.From, tr.To)
}

// canEndTransaction excludes steps that are never the last change of a transaction.
func canEndTransaction(tr protocol.Transition) bool {
	return tr.Step != "heartbeat" && tr.Step != "purge"
}

// transitionWrite describes the change that a step writes.
type transitionWrite struct {
	newAttempt bool // the attempt number increases
	sameOwner  bool // a leader ends its own attempt and keeps its owner
	ifDue      bool // the current record must be due, if it has a due time
	heartbeat  bool // the token does not change
}

// writeOf returns the change that a step writes. An unknown step fails the check,
// so that no row of the table is left out.
func (r *harness) writeOf(tr protocol.Transition) transitionWrite {
	r.Helper()
	waits := tr.From == store.Pending || tr.From == store.InProgress
	switch tr.Step {
	case "create", "reschedule", "heal", "resolve", "cancel", "redrive":
		return transitionWrite{}
	case "claim", "takeover", "inline":
		return transitionWrite{newAttempt: true, ifDue: waits}
	case "void":
		return transitionWrite{newAttempt: true}
	case "requeue":
		return transitionWrite{ifDue: true}
	case "heartbeat":
		return transitionWrite{heartbeat: true}
	case "succeed", "fail", "release", "doubt", "settle":
		return transitionWrite{sameOwner: true}
	default:
		r.Fatalf("the suite does not know how step %q writes", tr.Step)
		return transitionWrite{}
	}
}

// recordBefore creates a record in the state from, with attempt 3 and due after d.
func (r *harness) recordBefore(from store.State, d time.Duration) store.Record {
	r.Helper()
	rec := r.fresh()
	if from == store.Absent {
		return rec
	}
	rec.Due, rec.Input, rec.Outcome = d, []byte("input"), []byte("progress")
	rec.Token = token(from, 3)
	r.mustApply(store.Change{To: rec})
	return rec
}

// apply returns the step's change of the current record, and the record after it.
func (e transitionWrite) apply(current store.Record, to store.State) (store.Change, store.Record) {
	next := token(to, current.Attempt)
	if e.newAttempt {
		next.Attempt++
	}
	if e.sameOwner {
		next.Owner = current.Owner
	}
	if e.heartbeat {
		next = current.Token
	}
	c := move(current, next)
	c.IfDue = e.ifDue
	c.To.Due = farAhead
	want := current
	want.Token = next
	if !e.heartbeat {
		c.To.Outcome, want.Outcome = []byte("outcome"), []byte("outcome")
	}
	return c, want
}

// checkTransition makes the transition, and tries rivals that must be rejected.
func (r *harness) checkTransition(tr protocol.Transition) {
	if tr.Step == "purge" {
		r.checkPurge(tr)
		return
	}
	e := r.writeOf(tr)
	if e.ifDue {
		early := r.recordBefore(tr.From, farAhead)
		c, _ := e.apply(early, tr.To)
		r.mustReject(c, early.Token)
		r.mustHoldRecord(early)
	}
	current := r.recordBefore(tr.From, -time.Second)
	rival, _ := e.apply(current, tr.To)
	rival.To.Owner++
	c, want := e.apply(current, tr.To)
	if e.heartbeat {
		rival.If.Owner++
		r.mustReject(rival, current.Token)
	}
	r.mustApply(c)
	r.mustApply(c)
	r.mustHoldRecord(want)
	if !e.heartbeat {
		r.mustReject(rival, c.To.Token)
	}
	r.mustHoldRecord(want)
}

// checkPurge removes an expired record, and no other.
func (r *harness) checkPurge(tr protocol.Transition) {
	later, gone := r.expiring(tr.From, farAhead), r.expiring(tr.From, -time.Second)
	r.mustPurge(10, 1)
	r.mustBeAbsent(gone.ID)
	r.mustHoldRecord(later)
}

// checkTransitionTx makes the transition with an effect, and requires that the
// effect of a superseded rival is rolled back.
func (r *txHarness[Tx]) checkTransitionTx(tr protocol.Transition) {
	e := r.writeOf(tr)
	current := r.recordBefore(tr.From, -time.Second)
	rival, _ := e.apply(current, tr.To)
	rival.To.Owner++
	c, want := e.apply(current, tr.To)
	r.mustCommit(c.To.ID, false, r.effectThen("winner", &c, nil))
	r.mustSupersede(c.To.ID, false, r.effectThen("rival", &rival, nil))
	r.mustHoldRecord(want)
	r.mustHaveEffects("winner", 1)
	r.mustHaveEffects("rival", 0)
}
