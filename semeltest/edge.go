package semeltest

import (
	"fmt"
	"time"

	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// edgeChecks drive every edge of the protocol's table through Swap.
func edgeChecks() []storeCheck {
	var checks []storeCheck
	for _, tr := range protocol.Transitions() {
		checks = append(checks, storeCheck{edgeName(tr), func(r *rig) { r.drive(tr) }})
	}
	return checks
}

// edgeTxChecks drive them as the last change of a transaction.
func edgeTxChecks[Tx any]() []check[Tx] {
	var checks []check[Tx]
	for _, tr := range protocol.Transitions() {
		if inTransaction(tr) {
			checks = append(checks, check[Tx]{edgeName(tr), func(r *txRig[Tx]) { r.driveTx(tr) }})
		}
	}
	return inTx(checks...)
}

func edgeName(tr protocol.Transition) string {
	return fmt.Sprintf("%s-%v-%v", tr.Step, tr.From, tr.To)
}

// inTransaction leaves out what no transaction ends with.
func inTransaction(tr protocol.Transition) bool { return tr.Step != "heartbeat" && tr.Step != "purge" }

// edge is how a step writes.
type edge struct {
	again bool // the attempt goes up
	own   bool // a leader ends its own attempt, and keeps its owner
	ifDue bool // what stands must be due, when it has a due time
	beat  bool // the token stays
}

// edgeOf says how a step writes. A step that the suite does not know fails it,
// so that no row of the table is left out.
func (r *rig) edgeOf(tr protocol.Transition) edge {
	r.Helper()
	waits := tr.From == store.Pending || tr.From == store.InProgress
	switch tr.Step {
	case "create", "reschedule", "heal", "resolve", "cancel", "redrive":
		return edge{}
	case "claim", "takeover", "inline":
		return edge{again: true, ifDue: waits}
	case "void":
		return edge{again: true}
	case "requeue":
		return edge{ifDue: true}
	case "heartbeat":
		return edge{beat: true}
	case "succeed", "fail", "release", "doubt", "settle":
		return edge{own: true}
	default:
		r.Fatalf("the suite does not know how step %q writes", tr.Step)
		return edge{}
	}
}

// before lets the edge's From stand, at attempt 3 and due after d.
func (r *rig) before(from store.State, d time.Duration) store.Record {
	r.Helper()
	rec := r.fresh()
	if from == store.Absent {
		return rec
	}
	rec.Due, rec.Input, rec.Outcome = d, []byte("input"), []byte("progress")
	rec.Token = token(from, 3)
	r.mustForce(store.Change{To: rec})
	return rec
}

// along is the change that the edge makes of what stands, and the record that
// stands then.
func (e edge) along(stands store.Record, to store.State) (store.Change, store.Record) {
	next := token(to, stands.Attempt)
	if e.again {
		next.Attempt++
	}
	if e.own {
		next.Owner = stands.Owner
	}
	if e.beat {
		next = stands.Token
	}
	c := move(stands, next)
	c.IfDue = e.ifDue
	c.To.Due = long
	want := stands
	want.Token = next
	if !e.beat {
		c.To.Outcome, want.Outcome = []byte("outcome"), []byte("outcome")
	}
	return c, want
}

// drive takes the edge, and tries what must not come of it.
func (r *rig) drive(tr protocol.Transition) {
	if tr.Step == "purge" {
		r.drivePurge(tr)
		return
	}
	e := r.edgeOf(tr)
	if e.ifDue {
		early := r.before(tr.From, long)
		c, _ := e.along(early, tr.To)
		r.mustRefuse(c, early.Token)
		r.mustStand(early)
	}
	stands := r.before(tr.From, -time.Second)
	rival, _ := e.along(stands, tr.To)
	rival.To.Owner++
	c, want := e.along(stands, tr.To)
	if e.beat {
		rival.If.Owner++
		r.mustRefuse(rival, stands.Token)
	}
	r.mustForce(c)
	r.mustForce(c)
	r.mustStand(want)
	if !e.beat {
		r.mustRefuse(rival, c.To.Token)
	}
	r.mustStand(want)
}

// drivePurge removes a record whose time has come, and none else.
func (r *rig) drivePurge(tr protocol.Transition) {
	later, gone := r.expiring(tr.From, long), r.expiring(tr.From, -time.Second)
	r.mustPurge(10, 1)
	r.mustBeAbsent(gone.ID)
	r.mustStand(later)
}

// driveTx takes the edge with an effect, and requires that a rival's effect goes
// with its change.
func (r *txRig[Tx]) driveTx(tr protocol.Transition) {
	e := r.edgeOf(tr)
	stands := r.before(tr.From, -time.Second)
	rival, _ := e.along(stands, tr.To)
	rival.To.Owner++
	c, want := e.along(stands, tr.To)
	r.mustCommit(c.To.ID, false, r.ending("winner", &c, nil))
	r.mustRaise(c.To.ID, false, r.ending("rival", &rival, nil))
	r.mustStand(want)
	r.mustEffects("winner", 1)
	r.mustEffects("rival", 0)
}
