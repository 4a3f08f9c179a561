package semel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestEndedTransactionIsNotStoredAsFailure: a lost connection, a timeout, or a
// function that ends its transaction itself is not stored as the operation's
// failure, not even if the function marks its error as final. If the function has
// ended the transaction, a change of the record proves nothing about its writes.
func TestEndedTransactionIsNotStoredAsFailure(t *testing.T) {
	t.Parallel()
	ended := fault{Name: "ended by the handler", Rollback: store.ErrTxEndedByHandler, After: store.ErrTxEndedByHandler}
	for _, f := range []fault{{Name: "interrupted", Rollback: store.ErrInterrupted}, ended} {
		for kind, fnErr := range map[string]error{"plain": errBoom, "final": semel.Final(errBoom), "none": nil} {
			if fnErr == nil && f.After == nil {
				continue // TestRule01InlineCommitRefused
			}
			t.Run(f.Name+" "+kind, func(t *testing.T) {
				eachTxMode(t, func(t *testing.T, s txMode) {
					p, mem := solo(t, semel.Options{})
					s.o.OnError = semel.Keep
					call := plain("op", s.o).Call(me, "k", "in")
					p.faults.Decide(everyCommit(f))
					a := s.ask(t.Context(), p, call, func(context.Context, *memory.Tx) (string, error) { return "", fnErr })
					want, wantErr := store.NotCommitted, semel.ErrUnavailable
					if f.After != nil {
						want, wantErr = store.Unknown, semel.ErrOutcomeUnknown
						p.seen.want(t, event.Conflict)
					}
					a.wantErr(t, wantErr)
					check.Equal(t, semel.VerdictOf(a.err), want, "verdict")
					if r := record(t, mem, call); r.State.Final() {
						t.Errorf("the record is %v, want none that is final", r.State)
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
		p.hang()
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		patience, hangUp := context.WithCancel(t.Context())
		said := later(func() answer {
			return doTx(adapter.WithWaitContext(t.Context(), patience), p, call, neverTx(t))
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
			p.faults.Decide(func(request) fault {
				hang := first
				first = false
				return fault{Hang: hang}
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
