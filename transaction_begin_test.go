package semel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestTransactionCannotBegin: a caller without a deadline waits for the begin of
// its transaction for RecordTimeout, and gets an error that says so.
func TestTransactionCannotBegin(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		p, mem := solo(t, semel.Options{RecordTimeout: 3 * time.Second})
		call := plain("op", s.o).Call(me, "k", "in")
		p.faults.Decide(everyCommit(fault{Hang: true}))
		began := time.Now()
		s.ask(t.Context(), p, call, neverTx(t)).wantErr(t, semel.ErrUnavailable)
		check.Equal(t, time.Since(began), 3*time.Second, "the caller waited")
		p.seen.want(t, event.StoreError)
		p.faults.Decide(nil)
		s.ask(t.Context(), p, call, puts("e", "v")).want(t, "v", false)
		wantEffect(t, mem, "e", true)
	})
}

// TestTransactionBeginsAtItsTimeout: the store begins the transaction in the instant in
// which the wait for it ends. It runs, or the error names RecordTimeout.
func TestTransactionBeginsAtItsTimeout(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		p, _ := solo(t, semel.Options{RecordTimeout: 3 * time.Second})
		p.faults.Decide(func(r request) fault {
			if r.Method == "Atomic" {
				pass(3 * time.Second)
			}
			return fault{}
		})
		for n := range 200 {
			a := s.ask(t.Context(), p, plain("op", s.o).Call(me, fmt.Sprint(n), "in"), func(context.Context, *memory.Tx) (string, error) { return "v", nil })
			if a.err != nil && !strings.Contains(a.err.Error(), "RecordTimeout") {
				t.Fatalf("DoTx = %v, want an error that names RecordTimeout", a.err)
			}
		}
	})
}

// TestTransactionMayTakeLong: RecordTimeout does not bound a transaction that has begun.
func TestTransactionMayTakeLong(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		p, mem := solo(t, semel.Options{RecordTimeout: time.Second})
		call := plain("op", s.o).Call(me, "k", "in")
		s.ask(t.Context(), p, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
			pass(time.Minute)
			check.NoError(t, context.Cause(ctx), "the function's context")
			return puts("e", "v")(ctx, tx)
		}).want(t, "v", false)
		wantEffect(t, mem, "e", true)
	})
}

// TestTransactionWithinATransaction of the same connections is refused before anything
// runs, whichever engine opens it: the second could wait for the connection of the first.
func TestTransactionWithinATransaction(t *testing.T) {
	for _, inner := range txModes() {
		t.Run(inner.name+" within", func(t *testing.T) {
			eachTxMode(t, func(t *testing.T, around txMode) {
				p, same, _ := pair(t, semel.Options{})
				elsewhere, apart := solo(t, semel.Options{})
				call := plain("op", inner.o).Call(me, "k", "in")
				around.ask(t.Context(), p, plain("outer", around.o).Call(me, "k", "in"), func(ctx context.Context, _ *memory.Tx) (string, error) {
					for _, e := range []*process{p, same} {
						wantField(t, inner.ask(ctx, e, call, neverTx(t)).err, "ctx")
					}
					inner.ask(ctx, elsewhere, call, puts("e", "v")).want(t, "v", false)
					return "v", nil
				}).want(t, "v", false)
				wantEffect(t, apart, "e", true)
				inner.ask(t.Context(), same, call, puts("e", "v")).want(t, "v", false)
			})
		})
	}
}

// TestWritesWithinAnExclusiveTransaction are refused, because they would wait for the
// transaction that they are called in. EnqueueTx and reads are not.
func TestWritesWithinAnExclusiveTransaction(t *testing.T) {
	t.Parallel()
	p := exclusive(t, memory.New(memory.Options{}), semel.Options{})
	task := semel.Define("task", semel.OperationOptions[string]{Retry: &semel.Retry{}})
	id := task.Call(me, "k", "in").ID()
	writes := map[string]func(ctx context.Context) error{
		"Do": func(ctx context.Context) error { return do(ctx, p, theCall, never(t)).err },
		"Enqueue": func(ctx context.Context) error {
			_, err := semel.Enqueue(ctx, p.Engine, task.Call(me, "k", "in"), semel.EnqueueOptions{})
			return err
		},
		"Resolve": func(ctx context.Context) error {
			_, err := admin.Resolve(ctx, p, admin.Resolution{ID: id, To: store.Pending, Actor: "me", Reason: "r"})
			return err
		},
		"Redrive": func(ctx context.Context) error {
			_, err := admin.Redrive(ctx, p, admin.RedriveRequest{ID: id, Actor: "me", Reason: "r"})
			return err
		},
		"Reschedule": func(ctx context.Context) error { _, err := admin.Reschedule(ctx, p, id, 0); return err },
		"Cancel":     func(ctx context.Context) error { _, err := admin.Cancel(ctx, p, id, "r"); return err },
	}
	doTx(t.Context(), p, plain("outer", semel.OperationOptions[string]{}).Call(me, "k", "in"), func(ctx context.Context, tx *memory.Tx) (string, error) {
		for name, write := range writes {
			t.Run(name, func(t *testing.T) { wantField(t, write(ctx), "ctx") }) //nolint:paralleltest // within the transaction
		}
		_, err := semel.EnqueueTx(ctx, p.Engine, tx, task.Call(me, "k", "in"), semel.EnqueueOptions{})
		check.NoError(t, err, "EnqueueTx")
		_, _, err = admin.Get(ctx, p, "task", me, "k")
		check.NoError(t, err, "Get")
		return "v", nil
	}).want(t, "v", false)
	_, err := admin.Cancel(t.Context(), p, id, "r")
	check.NoError(t, err, "Cancel outside of the transaction")
}
