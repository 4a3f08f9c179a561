package semel_test

import (
	"context"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// Rule 13: correctness never needs background work. With no sweeper ever
// running, what a dead leader left blocks nothing but its own key, and a retry
// of that key settles it as the policy says.

func TestRule13RetrySettlesTheRecordOfADeadLeader(t *testing.T) {
	eachPolicy(t, func(t *testing.T, pc policyCase) {
		mem := memory.New(memory.Options{})
		op := plain("op", semel.OperationOptions[string]{Policy: pc.p})
		call := op.Call(me, "k", "in")
		claimAndCrash(t, start(t, mem, semel.Options{}), call)
		p := start(t, mem, semel.Options{})
		wantUnaffected(t, p, op, "before")
		if !pc.found { // evidence need not wait
			pass(lease - 1)
			do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrInProgress)
			pass(1)
		}
		wantSettled(t, p, mem, call, pc)
		wantUnaffected(t, p, op, "after")
		if n := p.faults.CallsOf("Scan") + p.faults.CallsOf("Purge"); n != 0 {
			t.Errorf("%d scans and purges, want no background work", n)
		}
	})
}

// wantSettled calls a key whose leader died, and checks that it is settled as the
// policy says, for all callers and permanently.
func wantSettled(t *testing.T, p *process, mem *memory.Store, call semel.Call, pc policyCase) {
	t.Helper()
	switch {
	case pc.found:
		do(t.Context(), p, call, never(t)).want(t, "found", true)
		wantState(t, mem, call, store.Succeeded)
	case pc.again:
		do(t.Context(), p, call, p.run(returns("again"))).want(t, "again", false)
		do(t.Context(), p, call, never(t)).want(t, "again", true)
		check.Equal(t, wantState(t, mem, call, store.Succeeded).Attempt, 2, "attempt: succeeded")
	default:
		do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrInDoubt)
		do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrInDoubt)
		wantState(t, mem, call, store.InDoubt)
	}
}

// wantUnaffected runs another key of the same operation and scope: nothing of
// the dead leader's is noticed.
func wantUnaffected(t *testing.T, p *process, op *semel.Operation[string], key string) {
	t.Helper()
	call := op.Call(me, key, "in")
	began := time.Now()
	do(t.Context(), p, call, p.run(returns("v"))).want(t, "v", false)
	check.Equal(t, time.Since(began), 0, "it took")
}

// TestRule13DeadLeaderOfATransaction: inline a crash leaves nothing, leased the
// lease is waited for. The transaction that was open is gone with its process.
func TestRule13DeadLeaderOfATransaction(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		mem := memory.New(memory.Options{})
		dead, p := start(t, mem, semel.Options{}), start(t, mem, semel.Options{})
		op := plain("op", s.o)
		call := op.Call(me, "k", "in")
		dead.faults.Decide(commits(commitDropped()))
		s.ask(t.Context(), dead, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
			_, _ = puts("e", "first")(ctx, tx)
			dead.faults.Decide(func(r request) fault { return fault{Before: errDead} })
			return "first", errDead
		})
		wantEffect(t, mem, "e", false)
		if s.leased {
			wantState(t, mem, call, store.InProgress)
			s.ask(t.Context(), p, call, neverTx(t)).wantErr(t, semel.ErrInProgress)
			pass(lease)
		}
		s.ask(t.Context(), p, call, puts("e", "second")).want(t, "second", false)
		wantEffect(t, mem, "e", true)
	})
}

// TestRule13InlineAfterALeasedLeader: an operation that was leased and is now
// inline continues with the dead leader's record.
func TestRule13InlineAfterALeasedLeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		before := plain("op", semel.OperationOptions[string]{Policy: semel.Atomic()})
		claimAndCrash(t, start(t, mem, semel.Options{}), before.Call(me, "k", "in"))
		call := before.Call(me, "k", "in")
		doTx(t.Context(), p, call, neverTx(t)).wantErr(t, semel.ErrInProgress)
		pass(lease)
		doTx(t.Context(), p, call, puts("e", "v")).want(t, "v", false)
		check.Equal(t, wantState(t, mem, call, store.Succeeded).Attempt, 2, "attempt: succeeded")
	})
}
