package semel_test

import (
	"context"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// Rule 2: a follower never changes a record except by claim, takeover, heal with
// evidence, or doubt after expiry. It never runs the function without a claim.

const (
	tryNew = "Absent→InProgress" // every call's first change: applied only if there is no record
	ended  = "InProgress→Succeeded"
)

// followerWrites is everything a caller may ask of the store when it finds s.
func followerWrites(s existingState, p policyCase) []string {
	switch s {
	case nothing:
		return []string{tryNew, ended}
	case pending:
		return []string{tryNew, "Pending→InProgress", ended}
	case live:
		if p.found {
			return []string{tryNew, ended}
		}
	case expired:
		switch {
		case p.found:
			return []string{tryNew, ended}
		case p.again:
			return []string{tryNew, "InProgress→InProgress", ended}
		default:
			return []string{tryNew, "InProgress→InDoubt"}
		}
	case inDoubt:
		if p.found {
			return []string{tryNew, "InDoubt→Succeeded"}
		}
	case succeeded, failed:
	}
	return []string{tryNew}
}

func TestRule02FollowerWritesNothingElse(t *testing.T) {
	eachPair(t, policies(), existingStates(), func(t *testing.T, pc policyCase, s existingState) {
		p, call := soloCall(t, semel.OperationOptions[string]{Policy: pc.p})
		createExisting(t, p.mem, call, s)
		before := record(t, p.mem, call)
		ran := false
		do(t.Context(), p, call, p.run(func(ctx context.Context) (string, error) {
			ran = true
			a, _ := semel.AttemptOf(ctx)
			check.Equal(t, wantState(t, p.mem, call, store.InProgress).Token, a.Token(), "while the function runs, the claim")
			return "v", nil
		}))
		wantEdges(t, p.faults, followerWrites(s, pc)...)
		check.Equal(t, ran, s == nothing || s == pending || s == expired && pc.again, "the function ran")
		for _, c := range p.faults.Changes() {
			checkFollowerChange(t, before, c)
		}
	})
}

// checkFollowerChange: a follower changes another caller's record only with a token
// of its own, and never while the lease may still run.
func checkFollowerChange(t *testing.T, before store.Record, c store.Change) {
	t.Helper()
	if c.If != before.Token || c.If.State == store.Absent {
		return // a first wish, or the end of its own attempt
	}
	if c.To.Owner == before.Owner {
		t.Errorf("%v → %v keeps the owner of another attempt", c.If, c.To.Token)
	}
	if heals := c.To.State == store.Succeeded; !heals && before.State == store.InProgress && !c.IfDue {
		t.Errorf("%v → %v does not compare the lease in the store", c.If, c.To.Token)
	}
}

// TestRule02InlineFollowerWritesNothingElse: an inline call has the right to the
// record or writes nothing, but doubt when the lease of a leader is over.
func TestRule02InlineFollowerWritesNothingElse(t *testing.T) {
	want := map[existingState][]string{
		nothing: {"Absent→Succeeded"}, pending: {"Pending→Succeeded"}, expired: {"InProgress→InDoubt"},
	}
	eachExisting(t, func(t *testing.T, s existingState) {
		p, call := soloCall(t, semel.OperationOptions[string]{})
		createExisting(t, p.mem, call, s)
		before := record(t, p.mem, call)
		doTx(t.Context(), p, call, puts("e", "v"))
		wantEdges(t, p.faults, want[s]...)
		wantEffect(t, p.mem, "e", s == nothing || s == pending)
		for _, c := range p.faults.Changes() {
			checkFollowerChange(t, before, c)
		}
	})
}

// TestRule02InlineWithoutTheRightRunsNothing: while another transaction has the right to the
// record, the function of no request is called, and the other request is invisible.
func TestRule02InlineWithoutTheRightRunsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, other, _ := pair(t, semel.Options{})
		op := plain("op", semel.OperationOptions[string]{})
		doTx(t.Context(), p, op.Call(me, "k", "in"), func(context.Context, *memory.Tx) (string, error) {
			doTx(t.Context(), other, op.Call(me, "k", "in"), neverTx(t)).wantErr(t, semel.ErrInProgress)
			doTx(t.Context(), other, op.Call(me, "k", "other"), neverTx(t)).wantErr(t, semel.ErrInProgress)
			return "v", nil
		}).want(t, "v", false)
		wantEdges(t, other.faults)
		doTx(t.Context(), other, op.Call(me, "k", "other"), neverTx(t)).wantErr(t, semel.ErrMismatch)
	})
}
