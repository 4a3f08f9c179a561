package semeltest

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/semelgo/semel/store"
)

func atomicChecks[Tx any]() []check[Tx] {
	return inTx(
		check[Tx]{"Commit", atomicCommit[Tx]},
		check[Tx]{"Stands", atomicStands[Tx]},
		check[Tx]{"Rollback", atomicRollback[Tx]},
		check[Tx]{"CreateNotInForce", atomicCreateNotInForce[Tx]},
		check[Tx]{"MoveNotInForce", atomicMoveNotInForce[Tx]},
		check[Tx]{"NotDue", atomicNotDue[Tx]},
		check[Tx]{"NotTwice", atomicNotTwice[Tx]},
		check[Tx]{"Refused", atomicRefused[Tx]},
		check[Tx]{"Panic", atomicPanic[Tx]},
		check[Tx]{"Goexit", atomicGoexit[Tx]},
		check[Tx]{"ContextEnds", atomicContextEnds[Tx]},
		check[Tx]{"HeartbeatInside", atomicHeartbeatInside[Tx]},
	)
}

// Record and effect commit together, in a create and in a change.
func atomicCommit[Tx any](r *txRig[Tx]) {
	rec := r.fresh()
	rec.Due, rec.Outcome = long, []byte("progress")
	claim := create(rec, store.InProgress)
	r.mustCommit(rec.ID, true, r.ending("claim", &claim, nil))
	r.mustStand(claim.To)
	r.mustEffects("claim", 1)

	finish := move(claim.To, token(store.Succeeded, 1))
	r.mustCommit(rec.ID, false, r.ending("finish", &finish, nil))
	want := claim.To
	want.Token = finish.To.Token
	r.mustStand(want)
	r.mustEffects("finish", 1)
}

// run is called once, and told what stands.
func atomicStands[Tx any](r *txRig[Tx]) {
	there, gone := r.stand(store.InProgress), r.fresh()
	for _, hold := range []bool{false, true} {
		calls := 0
		r.mustRollBack(there.ID, hold, func(_ context.Context, _ Tx, stands store.SwapResult) (*store.Change, error) {
			calls++
			if stands.Token != there.Token || stands.Record == nil {
				r.Errorf("run is told %s, want %s with its Record", showAnswer(stands), showToken(there.Token))
			} else if diff := diffRecords(*stands.Record, there); diff != "" {
				r.Errorf("run is told otherwise (-want +got):\n%s", diff)
			}
			return nil, errOwn
		})
		r.mustRollBack(gone.ID, hold, func(_ context.Context, _ Tx, stands store.SwapResult) (*store.Change, error) {
			calls++
			if stands.Token != (store.Token{}) || stands.Record != nil || stands.Busy || stands.Err != nil {
				r.Errorf("run is told %s of an absent record, want nothing", showAnswer(stands))
			}
			return nil, errOwn
		})
		if calls != 2 {
			r.Errorf("2 transactions called run %d times", calls)
		}
	}
}

func atomicRollback[Tx any](r *txRig[Tx]) {
	rec := r.fresh()
	r.mustRollBack(rec.ID, true, r.ending("effect", nil, errOwn))
	r.mustBeAbsent(rec.ID)
	r.mustEffects("effect", 0)
}

// A last change that is not in force takes everything with it.
func atomicCreateNotInForce[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.InProgress)
	second := create(rec, store.Succeeded)
	r.mustRaise(rec.ID, true, r.ending("effect", &second, nil))
	r.mustStand(rec)
	r.mustEffects("effect", 0)
}

func atomicMoveNotInForce[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.InProgress)
	for _, zombie := range []store.Token{
		{State: store.Pending, Attempt: 1, Owner: rec.Owner},
		{State: store.InProgress, Attempt: 2, Owner: rec.Owner},
		{State: store.InProgress, Attempt: 1, Owner: rec.Owner + 1},
	} {
		old := rec
		old.Token = zombie
		finish := move(old, token(store.Succeeded, 1))
		r.mustRaise(rec.ID, false, r.ending("effect", &finish, nil))
		r.mustStand(rec)
		r.mustEffects("effect", 0)
	}
	gone := r.fresh()
	gone.Token = rec.Token
	finish := move(gone, token(store.Succeeded, 1))
	r.mustRaise(gone.ID, false, r.ending("effect", &finish, nil))
	r.mustBeAbsent(gone.ID)
	r.mustEffects("effect", 0)
}

func atomicNotDue[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.InProgress)
	take := move(rec, token(store.Succeeded, 2))
	take.IfDue = true
	r.mustRaise(rec.ID, true, r.ending("early", &take, nil))
	r.mustStand(rec)
	r.mustEffects("early", 0)

	rec = r.fresh()
	c := create(rec, store.InProgress)
	r.mustForce(c)
	take = move(c.To, token(store.Succeeded, 2))
	take.IfDue = true
	r.mustCommit(rec.ID, true, r.ending("due", &take, nil))
	r.mustEffects("due", 1)
}

// A change that stands already was committed with the effects of its own
// transaction. Those of another one must not come on top.
func atomicNotTwice[Tx any](r *txRig[Tx]) {
	made := create(r.fresh(), store.Succeeded)
	r.mustCommit(made.To.ID, true, r.ending("create", &made, nil))
	r.mustRaise(made.To.ID, true, r.ending("create", &made, nil))
	r.mustEffects("create", 1)

	rec := r.stand(store.InProgress)
	finish := move(rec, token(store.Succeeded, 1))
	r.mustCommit(rec.ID, false, r.ending("finish", &finish, nil))
	r.mustRaise(rec.ID, false, r.ending("finish", &finish, nil))
	r.mustEffects("finish", 1)
}

// A last change that the store cannot keep is not committed, and is not taken
// for one that was too late.
func atomicRefused[Tx any](r *txRig[Tx]) {
	c := create(r.fresh(), store.Succeeded)
	c.To.Outcome = append(r.largest(), 0)
	verdict, err := r.tx.Atomic(r.ctx, c.To.ID, true, r.ending("effect", &c, nil))
	if verdict != store.NotCommitted || err == nil || errors.Is(err, store.ErrSuperseded) {
		r.Errorf("Atomic with an outcome that is too large = %v, %v, want NotCommitted and another error than ErrSuperseded", verdict, err)
	}
	r.mustBeAbsent(c.To.ID)
	r.mustEffects("effect", 0)
}

// A panic rolls back, gives back the right, and goes on.
func atomicPanic[Tx any](r *txRig[Tx]) {
	rec := r.fresh()
	value := func() (value any) {
		defer func() { value = recover() }()
		_, err := r.tx.Atomic(r.ctx, rec.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
			r.act(ctx, tx, "effect")
			panic(errOwn)
		})
		r.Errorf("Atomic returns %v although run panicked", err)
		return nil
	}()
	if value != any(errOwn) {
		r.Errorf("the panic goes on as %v, want its own value", value)
	}
	r.mustBeOver(rec.ID)
}

func atomicGoexit[Tx any](r *txRig[Tx]) {
	rec := r.fresh()
	var gone sync.WaitGroup
	gone.Go(func() {
		_, err := r.tx.Atomic(r.ctx, rec.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
			r.act(ctx, tx, "effect")
			runtime.Goexit()
			return nil, nil
		})
		r.Errorf("Atomic returns %v although run ended its goroutine", err)
	})
	gone.Wait()
	r.mustBeOver(rec.ID)
}

// mustBeOver requires that nothing is left of a transaction that had an effect.
func (r *txRig[Tx]) mustBeOver(id store.ID) {
	r.Helper()
	r.mustBeAbsent(id)
	r.mustEffects("effect", 0)
	if r.held(id) {
		r.Error("the right to the record was not given back")
	}
}

// The transaction does not end when ctx does: run decides.
func atomicContextEnds[Tx any](r *txRig[Tx]) {
	c := create(r.fresh(), store.Succeeded)
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	verdict, err := r.tx.Atomic(ctx, c.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.act(ctx, tx, "effect")
		cancel()
		return &c, nil
	})
	if verdict != store.Committed || err != nil {
		r.Errorf("Atomic whose context ended in run = %v, %v, want Committed, nil", verdict, err)
	}
	r.mustStand(c.To)
	r.mustEffects("effect", 1)
}

// A heartbeat from outside does not disturb the leader's transaction.
func atomicHeartbeatInside[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.InProgress)
	finish := move(rec, token(store.Succeeded, 1))
	r.mustCommit(rec.ID, false, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.act(ctx, tx, "effect")
		beat := move(rec, rec.Token)
		beat.To.Due = 2 * long
		answers, err := r.store.Swap(r.ctx, []store.Change{beat})
		if err != nil || !answers[0].Applied(beat) && !r.caps.SingleWriter {
			r.Errorf("heartbeat while a transaction is open = %v, %v, want in force", answers, err)
		}
		return &finish, nil
	})
	r.mustEffects("effect", 1)
}
