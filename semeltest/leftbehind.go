package semeltest

import (
	"context"
	"errors"
	"sync"

	"github.com/semelgo/semel/store"
)

// leftBehindChecks are about handlers that leave a goroutine behind with their
// transaction, as a timeout does.
func leftBehindChecks[Tx any]() []check[Tx] {
	return inTx(
		check[Tx]{"Afterwards", leftBehindAfterwards[Tx]},
		check[Tx]{"Meanwhile", leftBehindMeanwhile[Tx]},
		check[Tx]{"NotInForce", leftBehindNotInForce[Tx]},
		check[Tx]{"Kept", leftBehindKept[Tx]},
	)
}

// A transaction that has ended takes nothing more, and says so.
func leftBehindAfterwards[Tx any](r *txRig[Tx]) {
	for _, end := range []error{nil, errOwn} {
		var kept Tx
		last, late := create(r.fresh(), store.Succeeded), create(r.fresh(), store.Pending)
		_, err := r.tx.Atomic(r.ctx, last.To.ID, true, func(_ context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
			kept = tx
			if end != nil {
				return nil, end
			}
			return &last, nil
		})
		if !errors.Is(err, end) {
			r.Errorf("Atomic: %v, want %v", err, end)
		}
		if err := r.subject.Effect(r.ctx, kept, "late"); err == nil {
			r.Error("an effect in a transaction that has ended: no error")
		}
		if answers, err := r.tx.SwapTx(r.ctx, kept, []store.Change{late}); err == nil {
			r.Errorf("SwapTx in a transaction that has ended = %s, want an error", showAnswer(answers[0]))
		}
		r.mustBeAbsent(late.To.ID)
		r.mustEffects("late", 0)
		r.mustForce(late)
	}
}

// leaving is a run that leaves a goroutine behind, which goes on with its effect
// until it is refused. gone waits for that, and tells how many effects it was
// told of.
func (r *txRig[Tx]) leaving(key string, last store.Change, failed error) (run runFunc[Tx], gone func() int) {
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

// What a goroutine still writes while its transaction ends is committed with it,
// or is not; and nothing comes after that.
func leftBehindMeanwhile[Tx any](r *txRig[Tx]) {
	for range 6 {
		c := create(r.fresh(), store.Succeeded)
		key := c.To.ID.String()
		run, gone := r.leaving(key, c, nil)
		verdict, err := r.tx.Atomic(r.ctx, c.To.ID, true, run)
		told, effects := gone(), r.subject.Effects(key)
		if r.ctx.Err() != nil {
			r.Fatal("a goroutine that was left behind is never refused")
		}
		stands := r.read(c.To.ID)
		switch {
		case verdict == store.Committed && err == nil && stands != nil && effects > 0 && effects <= told+1:
		case verdict == store.NotCommitted && err != nil && stands == nil && effects == 0:
		default:
			r.Errorf("Atomic = %v, %v; %d effects, told of %d; %v stands", verdict, err, effects, told, stands)
		}
	}
}

// However it writes, a last change that is not in force takes all of it.
func leftBehindNotInForce[Tx any](r *txRig[Tx]) {
	for range 6 {
		zombie, winner := r.takenOver()
		key := zombie.ID.String()
		run, gone := r.leaving(key, move(zombie, store.Token{State: store.Succeeded, Attempt: 1, Owner: zombie.Owner}), nil)
		verdict, err := r.tx.Atomic(r.ctx, zombie.ID, false, run)
		told, effects := gone(), r.subject.Effects(key)
		if verdict != store.NotCommitted || err == nil || effects != 0 {
			r.Errorf("Atomic = %v, %v; %d effects, told of %d, want NotCommitted and none", verdict, err, effects, told)
		}
		r.mustStand(winner)
	}
}

// A failure that is kept has no effect, however long the handler's goroutine goes
// on: the transaction is not its own any more once run has returned.
func leftBehindKept[Tx any](r *txRig[Tx]) {
	for range 6 {
		c := create(r.fresh(), store.Failed)
		key := c.To.ID.String()
		run, gone := r.leaving(key, c, errOwn)
		verdict, err := r.tx.Atomic(r.ctx, c.To.ID, true, run)
		told, effects := gone(), r.subject.Effects(key)
		kept := verdict == store.Committed && err == nil && r.read(c.To.ID) != nil
		refused := verdict == store.NotCommitted && err != nil && r.read(c.To.ID) == nil
		if kept == refused || effects != 0 {
			r.Errorf("Atomic that keeps a failure = %v, %v; %d effects, told of %d, want it kept and none", verdict, err, effects, told)
		}
	}
}
