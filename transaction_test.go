package semel_test

import (
	"context"
	"errors"
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

// txMode is one way to commit effect and outcome together.
type txMode struct {
	name   string
	leased bool
	o      semel.OperationOptions[string]
	ask    func(ctx context.Context, p *process, c semel.Call, fn txHandler) answer
}

func txModes() map[string]txMode {
	return byName(func(s txMode) string { return s.name },
		txMode{name: "inline", ask: doTx},
		txMode{name: "leased", leased: true, o: semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: 30 * time.Second}, ask: doTx},
		txMode{name: "InTx", leased: true, o: semel.OperationOptions[string]{Policy: semel.Atomic()}, ask: doInTx})
}

// doInTx runs fn as the only transaction of a Do.
func doInTx(ctx context.Context, p *process, c semel.Call, fn txHandler) answer {
	return do(ctx, p, c, func(ctx context.Context) (string, error) {
		return semel.InTx(ctx, p.Engine, func(ctx context.Context, tx *memory.Tx) (string, error) { return fn(ctx, tx) })
	})
}

// eachTxMode runs test in a bubble for each mode.
func eachTxMode(t *testing.T, test func(t *testing.T, s txMode)) {
	t.Helper()
	eachInBubble(t, txModes(), test)
}

// eachLeasedMode is eachTxMode without the mode inline.
func eachLeasedMode(t *testing.T, test func(t *testing.T, s txMode)) {
	t.Helper()
	modes := txModes()
	delete(modes, "inline")
	eachInBubble(t, modes, test)
}

// rolledBack is the state of a new key after a transaction of the mode was rolled back.
func (s txMode) rolledBack() store.State {
	if s.leased {
		return store.Pending
	}
	return store.Absent
}

// anyTxModes are the modes, and a transaction that takes no lock first.
func anyTxModes() map[string]txMode {
	all := txModes()
	all["optimistic"] = txMode{name: "optimistic", o: optimistic(), ask: doTx}
	return all
}

// TestTransactionCannotBegin: a caller without a deadline waits for the begin of
// its transaction for RecordTimeout, and gets an error that says so.
func TestTransactionCannotBegin(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		p, call := soloWith(t, semel.Options{RecordTimeout: 3 * time.Second}, s.o)
		p.faults.Decide(everyCommit(fault{Hang: true}))
		began := time.Now()
		s.ask(t.Context(), p, call, neverTx(t)).wantErr(t, semel.ErrUnavailable)
		check.Equal(t, time.Since(began), 3*time.Second, "the caller waited")
		p.seen.want(t, event.StoreError)
		p.faults.Decide(nil)
		s.ask(t.Context(), p, call, puts("e", "v")).want(t, "v", false)
		wantEffect(t, p.mem, "e", true)
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
		p, call := soloWith(t, semel.Options{RecordTimeout: time.Second}, s.o)
		s.ask(t.Context(), p, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
			pass(time.Minute)
			check.NoError(t, context.Cause(ctx), "the function's context")
			return puts("e", "v")(ctx, tx)
		}).want(t, "v", false)
		wantEffect(t, p.mem, "e", true)
	})
}

// TestTransactionWithinATransaction of the same connections is refused before anything
// runs, whichever engine opens it: the second could wait for the connection of the first.
func TestTransactionWithinATransaction(t *testing.T) {
	eachPair(t, txModes(), txModes(), func(t *testing.T, inner, around txMode) {
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

// errEndedItself is what a store says when a function has committed the
// transaction that was only lent to it.
var errEndedItself = errors.New("the function ended the transaction")

// errAfterwards is what a function returns that has committed and then failed.
var errAfterwards = errors.New("afterwards")

// selfCommittingStore is a store under functions that commit by themselves: their
// writes are there, and the last change was never made.
type selfCommittingStore struct{ *memory.Store }

func (s selfCommittingStore) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	ran := false
	verdict, err := s.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
		change, err := run(ctx, tx, current)
		if ran = change != nil || errors.Is(err, errAfterwards) || errors.Is(err, errEndedItself); !ran {
			return nil, err
		}
		return nil, nil
	})
	if ran && err == nil {
		return store.Committed, errEndedItself
	}
	return verdict, err
}

// startSelfCommitting starts a process over s.
func startSelfCommitting(t *testing.T, s store.TxStore[*memory.Tx]) *process {
	t.Helper()
	p := &process{Engine: check.Must(semel.New(s, semel.Options{Survive: store.NoFailure}))(t)}
	t.Cleanup(func() { check.NoError(t, p.Close(context.Background())) })
	return p
}

// TestHandlerCommitsItsTransaction: the caller learns what happened, and the
// function never runs again, although its effect was committed without the record. If it
// fails afterwards, later callers learn that it succeeded, without a result.
func TestHandlerCommitsItsTransaction(t *testing.T) {
	eachPair(t, txModes(), map[string]bool{"and succeeds": false, "and fails": true}, func(t *testing.T, s txMode, fails bool) {
		p := startSelfCommitting(t, selfCommittingStore{memory.New(memory.Options{})})
		call := plain("op", s.o).Call(me, "k", "in")
		if !fails {
			s.ask(t.Context(), p, call, puts("effect", "v")).want(t, "v", false)
			s.ask(t.Context(), p, call, neverTx(t)).want(t, "v", true)
			return
		}
		a := s.ask(t.Context(), p, call, failsAfter(errAfterwards))
		a.wantErr(t, errAfterwards)
		check.Equal(t, semel.VerdictOf(a.err), store.Committed, "verdict")
		s.ask(t.Context(), p, call, neverTx(t)).wantNoResult(t)
	})
}

// TestEndedTransactionIsNotStoredAsFailure: a lost connection, a timeout, or a
// function that ends its transaction itself is not stored as the operation's
// failure, not even if the function marks its error as final. If the function has
// ended the transaction, a change of the record proves nothing about its writes.
func TestEndedTransactionIsNotStoredAsFailure(t *testing.T) {
	interrupted := fault{Rollback: store.ErrInterrupted}
	ended := fault{Rollback: store.ErrTxEndedByHandler, After: store.ErrTxEndedByHandler}
	type row struct {
		commit fault
		fnErr  error
	}
	eachPair(t, txModes(), map[string]row{
		"interrupted, error":                 {interrupted, errBoom},
		"interrupted, final error":           {interrupted, semel.Final(errBoom)},
		"ended by the handler, error":        {ended, errBoom},
		"ended by the handler, final error":  {ended, semel.Final(errBoom)},
		"ended by the handler without error": {ended, nil},
	}, func(t *testing.T, s txMode, tt row) {
		s.o.OnError = semel.Keep
		p, call := soloCall(t, s.o)
		p.faults.Decide(everyCommit(tt.commit))
		a := s.ask(t.Context(), p, call, func(context.Context, *memory.Tx) (string, error) { return "", tt.fnErr })
		want, wantErr := store.NotCommitted, semel.ErrUnavailable
		if tt.commit.After != nil {
			want, wantErr = store.Unknown, semel.ErrOutcomeUnknown
			p.seen.want(t, event.Conflict)
		}
		a.wantErr(t, wantErr)
		check.Equal(t, semel.VerdictOf(a.err), want, "verdict")
		if r := record(t, p.mem, call); r.State.Final() {
			t.Errorf("the record is %v, want none that is final", r.State)
		}
	})
}

// TestFunctionWritesItsOwnRecord: the call never succeeds, and it does not run
// forever.
func TestFunctionWritesItsOwnRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		runs := 0
		_, _, err := semel.DoTx(t.Context(), p.Engine, theCall, func(ctx context.Context, tx *memory.Tx) (string, error) {
			runs++
			_, err := semel.EnqueueTx(ctx, p.Engine, tx, theCall, semel.EnqueueOptions{Delay: time.Hour})
			return "v", err
		})
		if err == nil || runs > 8 {
			t.Errorf("%d runs, %v, want an error after at most 8", runs, err)
		}
	})
}
