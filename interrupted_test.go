package semel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// ending is a store whose transactions end as the test says.
type ending struct {
	*memory.Store

	end func(verdict store.Verdict, err error) (store.Verdict, error)
}

func (e *ending) Atomic(ctx context.Context, id store.ID, hold bool, run runInTx) (store.Verdict, error) {
	verdict, err := e.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
		_, err := run(ctx, tx, current)
		return nil, errors.Join(errors.New("ended"), err)
	})
	return e.end(verdict, err)
}

// endingWays are the shapes of an operation in a transaction that keeps failures.
func endingWays() map[string]semel.OperationOptions[string] {
	return map[string]semel.OperationOptions[string]{
		"inline": {OnError: semel.Keep},
		"leased": {OnError: semel.Keep, Policy: semel.Atomic(), Lease: lease},
	}
}

// TestInterruptedTransactionIsNotStoredAsFailure: a lost connection or a timeout
// is not stored as the operation's failure, not even if the function marks its
// error as final.
func TestInterruptedTransactionIsNotStoredAsFailure(t *testing.T) {
	t.Parallel()
	for name, o := range endingWays() {
		for kind, fnErr := range map[string]error{"plain": errBoom, "final": semel.Final(errBoom)} {
			t.Run(name+" "+kind, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					mem := memory.New(memory.Options{})
					engine, err := semel.New(&ending{mem, func(v store.Verdict, err error) (store.Verdict, error) {
						return v, errors.Join(store.ErrInterrupted, err)
					}}, semel.Options{Survive: store.NoFailure})
					if err != nil {
						t.Fatal(err)
					}
					call := plain("op", o).Call(me, "k", "in")
					_, _, err = semel.DoTx(t.Context(), engine, call, func(context.Context, *memory.Tx) (string, error) { return "", fnErr })
					if semel.VerdictOf(err) != store.NotCommitted || !errors.Is(err, semel.ErrUnavailable) {
						t.Errorf("got %v, want NotCommitted and ErrUnavailable", err)
					}
					if r := record(t, mem, call); r.State == store.Failed {
						t.Errorf("%v is kept as the operation's failure", err)
					}
					if err := engine.Close(t.Context()); err != nil {
						t.Errorf("Close: %v", err)
					}
				})
			})
		}
	}
}

// TestTxEndedByHandlerIsUnknown: if a function ends its transaction itself, a
// change of the record proves nothing about its writes.
func TestTxEndedByHandlerIsUnknown(t *testing.T) {
	t.Parallel()
	for name, o := range endingWays() {
		for kind, fnErr := range map[string]error{"": nil, " and failed": errBoom, " and says final": semel.Final(errBoom)} {
			t.Run(name+kind, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					mem, eyes := memory.New(memory.Options{}), new(seen)
					engine, err := semel.New(&ending{mem, func(_ store.Verdict, err error) (store.Verdict, error) {
						return store.Unknown, errors.Join(store.ErrTxEndedByHandler, err)
					}}, semel.Options{Survive: store.NoFailure, Observer: eyes})
					if err != nil {
						t.Fatal(err)
					}
					call := plain("op", o).Call(me, "k", "in")
					_, _, err = semel.DoTx(t.Context(), engine, call, func(context.Context, *memory.Tx) (string, error) { return "", fnErr })
					if semel.VerdictOf(err) != store.Unknown || !errors.Is(err, semel.ErrOutcomeUnknown) {
						t.Errorf("got %v, want an unknown outcome", err)
					}
					if r := record(t, mem, call); r.State != store.Absent && r.State != store.InProgress {
						t.Errorf("the record says %v", r.State)
					}
					eyes.want(t, semel.EventConflict)
					if err := engine.Close(t.Context()); err != nil {
						t.Errorf("Close: %v", err)
					}
				})
			})
		}
	}
}

// TestFunctionWritesItsOwnRecord: the call never succeeds, and it does not run
// forever.
func TestFunctionWritesItsOwnRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		runs := 0
		_, _, err := semel.DoTx(t.Context(), p.Engine, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
			runs++
			_, err := semel.EnqueueTx(ctx, p.Engine, tx, call, semel.EnqueueOptions{Delay: time.Hour})
			return "v", err
		})
		if err == nil || runs > 8 {
			t.Errorf("%d runs, %v, want an error after at most 8", runs, err)
		}
	})
}

// TestWaitEndsBeforeTheTransactionBegins: the function does not run for a caller
// that canceled while it waited for a transaction.
func TestWaitEndsBeforeTheTransactionBegins(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		p.wire.blackHole()
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		patience, hangUp := context.WithCancel(t.Context())
		said := later(func() answer {
			return doTx(semel.WithWaitContext(t.Context(), patience), p, call, neverTx(t))
		})
		synctest.Wait()
		hangUp()
		(<-said).wantErr(t, semel.ErrUnavailable)
	})
}

// TestCanceledCallerDoesNotFailOthers: a caller that cancels while it waits for
// the store does not fail the other callers of the key. One of them sends the
// request in its place.
func TestCanceledCallerDoesNotFailOthers(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		for name, hangable := range map[string]func() (context.Context, context.CancelFunc){
			"the context ends":  func() (context.Context, context.CancelFunc) { return context.WithCancel(t.Context()) },
			"the patience ends": func() (context.Context, context.CancelFunc) { return hangUpCall(t) },
		} {
			p, _ := solo(t, semel.Options{Wait: time.Minute})
			call := plain("op", d.o).Call(me, "k", "in")
			first := true
			p.wire.on(func(request) fault {
				hang := first
				first = false
				return fault{hang: hang}
			})
			ctx, hangUp := hangable()
			leader := later(func() answer { return d.ask(ctx, p, call, never(t)) })
			synctest.Wait()
			follower := later(func() answer { return d.ask(t.Context(), p, call, returns("v")) })
			synctest.Wait()
			hangUp()
			if a := <-leader; a.err == nil {
				t.Errorf("%s: the caller that hung up got %q", name, a.v)
			}
			if a := <-follower; a.err != nil || a.v != "v" {
				t.Errorf("%s: the other caller got %q, %v, want the result", name, a.v, a.err)
			}
		}
	})
}
