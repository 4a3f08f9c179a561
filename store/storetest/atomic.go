package storetest

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

func atomicChecks[Tx any]() []txCheck[Tx] {
	return []txCheck[Tx]{
		{"Commit", atomicCommit[Tx]},
		{"PassesCurrent", atomicPassesCurrent[Tx]},
		{"Rollback", atomicRollback[Tx]},
		{"CreateSuperseded", atomicCreateSuperseded[Tx]},
		{"MoveSuperseded", atomicMoveSuperseded[Tx]},
		{"NotDue", atomicNotDue[Tx]},
		{"AlreadyApplied", atomicAlreadyApplied[Tx]},
		{"Rejected", atomicRejected[Tx]},
		{"Panic", atomicPanic[Tx]},
		{"Goexit", atomicGoexit[Tx]},
		{"ContextEnds", atomicContextEnds[Tx]},
		{"HeartbeatInside", atomicHeartbeatInside[Tx]},
	}
}

// Record and effect commit together, in a create and in a change.
func atomicCommit[Tx any](r *txHarness[Tx]) {
	rec := r.fresh()
	rec.Due, rec.Outcome = farAhead, []byte("progress")
	claim := create(rec, store.InProgress)
	r.mustCommit(rec.ID, true, r.effectThen("claim", &claim, nil))
	r.mustHoldRecord(claim.To)
	r.mustHaveEffects("claim", 1)

	finish := move(claim.To, token(store.Succeeded, 1))
	r.mustCommit(rec.ID, false, r.effectThen("finish", &finish, nil))
	want := claim.To
	want.Token = finish.To.Token
	r.mustHoldRecord(want)
	r.mustHaveEffects("finish", 1)
}

// Atomic calls run once, with the current record.
func atomicPassesCurrent[Tx any](r *txHarness[Tx]) {
	there, gone := r.mustCreateIn(store.InProgress), r.fresh()
	for _, hold := range []bool{false, true} {
		calls := 0
		r.mustRollBack(there.ID, hold, func(_ context.Context, _ Tx, current store.SwapResult) (*store.Change, error) {
			calls++
			if current.Token != there.Token || current.Record == nil {
				r.Errorf("run gets %s, want %s with its Record", showAnswer(current), showToken(there.Token))
			} else if diff := diffRecords(*current.Record, there); diff != "" {
				r.Errorf("run gets another record (-want +got):\n%s", diff)
			}
			return nil, errRun
		})
		r.mustRollBack(gone.ID, hold, func(_ context.Context, _ Tx, current store.SwapResult) (*store.Change, error) {
			calls++
			if current.Token != (store.Token{}) || current.Record != nil || current.Busy || current.Err != nil {
				r.Errorf("run gets %s of an absent record, want nothing", showAnswer(current))
			}
			return nil, errRun
		})
		check.Equal(r, calls, 2, "2 transactions called run")
	}
}

func atomicRollback[Tx any](r *txHarness[Tx]) {
	rec := r.fresh()
	r.mustRollBack(rec.ID, true, r.effectThen("effect", nil, errRun))
	r.mustBeAbsent(rec.ID)
	r.mustHaveEffects("effect", 0)
}

// A superseded last change rolls the whole transaction back.
func atomicCreateSuperseded[Tx any](r *txHarness[Tx]) {
	rec := r.mustCreateIn(store.InProgress)
	second := create(rec, store.Succeeded)
	r.mustSupersede(rec.ID, true, r.effectThen("effect", &second, nil))
	r.mustHoldRecord(rec)
	r.mustHaveEffects("effect", 0)
}

func atomicMoveSuperseded[Tx any](r *txHarness[Tx]) {
	rec := r.mustCreateIn(store.InProgress)
	for _, zombie := range []store.Token{
		{State: store.Pending, Attempt: 1, Owner: rec.Owner},
		{State: store.InProgress, Attempt: 2, Owner: rec.Owner},
		{State: store.InProgress, Attempt: 1, Owner: rec.Owner + 1},
	} {
		old := rec
		old.Token = zombie
		finish := move(old, token(store.Succeeded, 1))
		r.mustSupersede(rec.ID, false, r.effectThen("effect", &finish, nil))
		r.mustHoldRecord(rec)
		r.mustHaveEffects("effect", 0)
	}
	gone := r.fresh()
	gone.Token = rec.Token
	finish := move(gone, token(store.Succeeded, 1))
	r.mustSupersede(gone.ID, false, r.effectThen("effect", &finish, nil))
	r.mustBeAbsent(gone.ID)
	r.mustHaveEffects("effect", 0)
}

func atomicNotDue[Tx any](r *txHarness[Tx]) {
	rec := r.mustCreateIn(store.InProgress)
	take := move(rec, token(store.Succeeded, 2))
	take.IfDue = true
	r.mustSupersede(rec.ID, true, r.effectThen("early", &take, nil))
	r.mustHoldRecord(rec)
	r.mustHaveEffects("early", 0)

	rec = r.fresh()
	c := create(rec, store.InProgress)
	r.mustApply(c)
	take = move(c.To, token(store.Succeeded, 2))
	take.IfDue = true
	r.mustCommit(rec.ID, true, r.effectThen("due", &take, nil))
	r.mustHaveEffects("due", 1)
}

// A change that is already applied was committed with the effects of its own
// transaction. Those of another transaction must not be added.
func atomicAlreadyApplied[Tx any](r *txHarness[Tx]) {
	made := create(r.fresh(), store.Succeeded)
	r.mustCommit(made.To.ID, true, r.effectThen("create", &made, nil))
	r.mustSupersede(made.To.ID, true, r.effectThen("create", &made, nil))
	r.mustHaveEffects("create", 1)

	rec := r.mustCreateIn(store.InProgress)
	finish := move(rec, token(store.Succeeded, 1))
	r.mustCommit(rec.ID, false, r.effectThen("finish", &finish, nil))
	r.mustSupersede(rec.ID, false, r.effectThen("finish", &finish, nil))
	r.mustHaveEffects("finish", 1)
}

// A last change that the store cannot keep is not committed, and the error is not
// ErrSuperseded.
func atomicRejected[Tx any](r *txHarness[Tx]) {
	c := create(r.fresh(), store.Succeeded)
	c.To.Outcome = append(r.largest(), 0)
	verdict, err := r.tx.Atomic(r.ctx, c.To.ID, true, r.effectThen("effect", &c, nil))
	if verdict != store.NotCommitted || err == nil || errors.Is(err, store.ErrSuperseded) {
		r.Errorf("Atomic with an outcome that is too large = %v, %v, want NotCommitted and another error than ErrSuperseded", verdict, err)
	}
	r.mustBeAbsent(c.To.ID)
	r.mustHaveEffects("effect", 0)
}

// A panic rolls back, releases the right, and continues.
func atomicPanic[Tx any](r *txHarness[Tx]) {
	rec := r.fresh()
	value := func() (value any) {
		defer func() { value = recover() }()
		_, err := r.tx.Atomic(r.ctx, rec.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
			r.addEffect(ctx, tx, "effect")
			panic(errRun)
		})
		r.Errorf("Atomic returns %v although run panicked", err)
		return nil
	}()
	if value != any(errRun) {
		r.Errorf("the panic goes on as %v, want its own value", value)
	}
	r.mustBeRolledBack(rec.ID)
}

func atomicGoexit[Tx any](r *txHarness[Tx]) {
	rec := r.fresh()
	var gone sync.WaitGroup
	gone.Go(func() {
		_, err := r.tx.Atomic(r.ctx, rec.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
			r.addEffect(ctx, tx, "effect")
			runtime.Goexit()
			return nil, nil
		})
		r.Errorf("Atomic returns %v although run ended its goroutine", err)
	})
	gone.Wait()
	r.mustBeRolledBack(rec.ID)
}

// mustBeRolledBack requires that a transaction with an effect has left nothing.
func (r *txHarness[Tx]) mustBeRolledBack(id store.ID) {
	r.Helper()
	r.mustBeAbsent(id)
	r.mustHaveEffects("effect", 0)
	if r.isLocked(id) {
		r.Error("the right to the record was not given back")
	}
}

// The transaction does not end when ctx does: run decides.
func atomicContextEnds[Tx any](r *txHarness[Tx]) {
	c := create(r.fresh(), store.Succeeded)
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	verdict, err := r.tx.Atomic(ctx, c.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.addEffect(ctx, tx, "effect")
		cancel()
		return &c, nil
	})
	check.Result(verdict, err)(r, store.Committed, "Atomic whose context ended in run (want Committed, nil)")
	r.mustHoldRecord(c.To)
	r.mustHaveEffects("effect", 1)
}

// A heartbeat from outside does not disturb the leader's transaction, or the
// transaction fails with a conflict if it excludes no other writers.
func atomicHeartbeatInside[Tx any](r *txHarness[Tx]) {
	rec := r.mustCreateIn(store.InProgress)
	finish := move(rec, token(store.Succeeded, 1))
	end := func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.addEffect(ctx, tx, "effect")
		return &finish, nil
	}
	verdict, err := r.tx.Atomic(r.ctx, rec.ID, false, func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error) {
		beat := move(rec, rec.Token)
		beat.To.Due = 2 * farAhead
		answers, err := r.store.Swap(r.ctx, []store.Change{beat})
		if err != nil || !answers[0].Applied(beat) && r.caps.Exclusion != store.ExcludesAll {
			r.Errorf("heartbeat while a transaction is open = %v, %v, want applied", answers, err)
		}
		return end(ctx, tx, current)
	})
	switch {
	case r.caps.Exclusion == store.ExcludesNothing && verdict == store.NotCommitted && errors.Is(err, store.ErrConflict):
		r.mustCommit(rec.ID, false, end)
	case verdict != store.Committed || err != nil:
		r.Fatalf("Atomic = %v, %v, want Committed, nil", verdict, err)
	}
	r.mustHaveEffects("effect", 1)
}
