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
	t.Parallel()
	for _, pc := range policies() {
		for _, s := range existingStates() {
			t.Run(pc.name+"/"+string(s), func(t *testing.T) {
				bubble(t, func(t *testing.T) { testFollower(t, pc, s) })
			})
		}
	}
}

func testFollower(t *testing.T, pc policyCase, s existingState) {
	t.Helper()
	mem := memory.New(memory.Options{})
	call := plain("op", semel.OperationOptions[string]{Policy: pc.p}).Call(me, "k", "in")
	createExisting(t, mem, call, s)
	before := record(t, mem, call)
	p := start(t, mem, semel.Options{})
	ran := false
	do(t.Context(), p, call, p.run(func(ctx context.Context) (string, error) {
		ran = true
		a, _ := semel.AttemptOf(ctx)
		if r := record(t, mem, call); r.Token != a.Token() || r.State != store.InProgress {
			t.Errorf("the function runs while the current record is %+v, want its claim %+v", r.Token, a.Token())
		}
		return "v", nil
	}))
	wantEdges(t, p.faults, followerWrites(s, pc)...)
	leads := s == nothing || s == pending || s == expired && pc.again
	check.Equal(t, ran, leads, "the function ran")
	for _, c := range p.faults.Changes() {
		checkFollowerChange(t, before, c)
	}
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
	t.Parallel()
	want := map[existingState][]string{
		nothing: {"Absent→Succeeded"}, pending: {"Pending→Succeeded"}, expired: {"InProgress→InDoubt"},
	}
	for _, s := range existingStates() {
		t.Run(string(s), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mem := memory.New(memory.Options{})
				call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
				createExisting(t, mem, call, s)
				before := record(t, mem, call)
				p := start(t, mem, semel.Options{})
				doTx(t.Context(), p, call, puts("e", "v"))
				wantEdges(t, p.faults, want[s]...)
				wantEffect(t, mem, "e", s == nothing || s == pending)
				for _, c := range p.faults.Changes() {
					checkFollowerChange(t, before, c)
				}
			})
		})
	}
}

// TestRule02InlineWithoutTheRightRunsNothing: while another transaction has the
// right to the record, the function is not called.
func TestRule02InlineWithoutTheRightRunsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		p, other := start(t, mem, semel.Options{}), start(t, mem, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		doTx(t.Context(), p, call, func(context.Context, *memory.Tx) (string, error) {
			doTx(t.Context(), other, call, neverTx(t)).wantErr(t, semel.ErrInProgress)
			return "v", nil
		}).want(t, "v", false)
		wantEdges(t, other.faults)
	})
}
