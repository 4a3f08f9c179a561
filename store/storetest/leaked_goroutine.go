package storetest

import (
	"context"
	"sync"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// leakedGoroutineChecks test handlers that leave a goroutine with their transaction
// running, as a timeout does.
func leakedGoroutineChecks[Tx any]() []txCheck[Tx] {
	return []txCheck[Tx]{
		{"AfterEnd", leakedWritesAfterEnd[Tx]},
		{"DuringEnd", leakedWritesDuringEnd[Tx]},
		{"Superseded", leakedWritesSuperseded[Tx]},
		{"KeptFailure", leakedWritesKeptFailure[Tx]},
	}
}

// A transaction that has ended rejects writes with an error.
func leakedWritesAfterEnd[Tx any](r *txHarness[Tx]) {
	for _, end := range []error{nil, errRun} {
		var kept Tx
		last, late := create(r.fresh(), store.Succeeded), create(r.fresh(), store.Pending)
		_, err := r.tx.Atomic(r.ctx, last.To.ID, true, func(_ context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
			kept = tx
			if end != nil {
				return nil, end
			}
			return &last, nil
		})
		check.ErrorIs(r, err, end, "Atomic")
		check.Fails(r, r.subject.Effect(r.ctx, kept, "late"), "an effect in a transaction that has ended: no error")
		if answers, err := r.tx.SwapTx(r.ctx, kept, []store.Change{late}); err == nil {
			r.Errorf("SwapTx in a transaction that has ended = %s, want an error", showAnswer(answers[0]))
		}
		r.mustBeAbsent(late.To.ID)
		r.mustHaveEffects("late", 0)
		r.mustApply(late)
	}
}

// leakGoroutine is a run function that leaves a goroutine running, which writes
// effects until one is rejected. gone waits for its end and returns how many
// effects were confirmed.
func (r *txHarness[Tx]) leakGoroutine(key string, last store.Change, failed error) (run runFunc[Tx], gone func() int) {
	var left sync.WaitGroup
	told := 0
	run = func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		begun := make(chan struct{})
		left.Go(func() {
			for r.ctx.Err() == nil && r.subject.Effect(context.WithoutCancel(ctx), tx, key) == nil {
				if told++; told == 1 {
					close(begun)
				}
			}
			if told == 0 {
				close(begun)
			}
		})
		<-begun
		return &last, failed
	}
	return run, func() int { left.Wait(); return told }
}

// A write of a goroutine during the end of its transaction is committed with the
// transaction or rejected. Later writes are rejected.
func leakedWritesDuringEnd[Tx any](r *txHarness[Tx]) {
	for range 6 {
		c := create(r.fresh(), store.Succeeded)
		key := c.To.ID.String()
		run, gone := r.leakGoroutine(key, c, nil)
		verdict, err := r.tx.Atomic(r.ctx, c.To.ID, true, run)
		told, effects := gone(), r.subject.Effects(key)
		if r.ctx.Err() != nil {
			r.Fatal("a goroutine that was left behind is never refused")
		}
		current := r.read(c.To.ID)
		switch {
		case verdict == store.Committed && err == nil && current != nil && effects > 0 && effects <= told+1:
		case verdict == store.NotCommitted && err != nil && current == nil && effects == 0:
		default:
			r.Errorf("Atomic = %v, %v; %d effects, %d confirmed; %v is current", verdict, err, effects, told, current)
		}
	}
}

// If the last change is superseded, the goroutine's writes are rolled back too.
func leakedWritesSuperseded[Tx any](r *txHarness[Tx]) {
	for range 6 {
		zombie, winner := r.mustTakeOver()
		key := zombie.ID.String()
		run, gone := r.leakGoroutine(key, move(zombie, store.Token{State: store.Succeeded, Attempt: 1, Owner: zombie.Owner}), nil)
		verdict, err := r.tx.Atomic(r.ctx, zombie.ID, false, run)
		told, effects := gone(), r.subject.Effects(key)
		if verdict != store.NotCommitted || err == nil || effects != 0 {
			r.Errorf("Atomic = %v, %v; %d effects, %d confirmed, want NotCommitted and none", verdict, err, effects, told)
		}
		r.mustHoldRecord(winner)
	}
}

// A stored failure has no effect, however long the handler's goroutine writes:
// after run has returned, the goroutine can no longer use the transaction.
func leakedWritesKeptFailure[Tx any](r *txHarness[Tx]) {
	for range 6 {
		c := create(r.fresh(), store.Failed)
		key := c.To.ID.String()
		run, gone := r.leakGoroutine(key, c, errRun)
		verdict, err := r.tx.Atomic(r.ctx, c.To.ID, true, run)
		told, effects := gone(), r.subject.Effects(key)
		kept := verdict == store.Committed && err == nil && r.read(c.To.ID) != nil
		refused := verdict == store.NotCommitted && err != nil && r.read(c.To.ID) == nil
		if kept == refused || effects != 0 {
			r.Errorf("Atomic that keeps a failure = %v, %v; %d effects, %d confirmed, want it kept and none", verdict, err, effects, told)
		}
	}
}
