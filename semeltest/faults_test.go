package semeltest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/plainstore"
	"github.com/semelgo/semel/semeltest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

func TestCrash(t *testing.T) {
	onEveryStore(t, crashes, crashes, crashes)
}

// crashes crashes a leader at each point of each way, and lets another process make the
// same call before and after the end of the lease.
func crashes[Tx any](t *testing.T, s storetest.Subject[Tx]) {
	t.Helper()
	for _, at := range []semeltest.Point{semeltest.BeforeFunction, semeltest.AfterFunction, semeltest.AfterOutcome} {
		for _, w := range ways(s) {
			t.Run(fmt.Sprint(at, "/", w.name), func(t *testing.T) {
				call := w.call(at.String())
				effect, runs := call.Operation(), 0
				fn := func(ctx context.Context, tx Tx) (string, error) {
					runs++
					return fmt.Sprint("run ", runs), s.Effect(ctx, tx, effect)
				}
				_, _, _ = w.run(t.Context(), newEngine(t, semeltest.Crash(t, s.Store, at)), call, fn)
				after, other := runs, newEngine(t, s.Store)
				check.Equal(t, after > 0, at > semeltest.BeforeFunction, "the function ran")
				first, _, err := w.run(t.Context(), other, call, fn)
				switch {
				case at == semeltest.AfterOutcome:
					check.NoError(t, err, "a retry")
				case w.leased:
					check.ErrorIs(t, err, semel.ErrInProgress, "a retry before the lease ends")
					check.Equal(t, runs, after, "runs before the lease ends")
				}
				semeltest.Advance(t, s.Store, lease)
				last, _, err := w.run(t.Context(), other, call, fn)
				check.NoError(t, err, "a retry after the lease")
				if first != "" {
					check.Equal(t, last, first, "the outcome")
				}
				want := 1
				if at == semeltest.AfterFunction && !w.inTx {
					want = 2 // AtLeastOnce runs again
				}
				check.Equal(t, s.Effects(effect), want, "effects")
			})
		}
	}
}

func TestLoseReply(t *testing.T) {
	onEveryStore(t, losesReply, losesReply, losesReply)
}

func losesReply[Tx any](t *testing.T, s storetest.Subject[Tx]) {
	t.Helper()
	for _, w := range ways(s) {
		t.Run(w.name, func(t *testing.T) {
			call := w.call("lost")
			fn := func(ctx context.Context, tx Tx) (string, error) { return "v", s.Effect(ctx, tx, call.Operation()) }
			e := newEngine(t, semeltest.LoseReply(t, s.Store))
			for _, replayed := range []bool{false, true} {
				v, again, err := w.run(t.Context(), e, call, fn)
				if v != "v" || again != replayed || err != nil {
					t.Errorf("got %q, replayed %v, %v; want v, replayed %v", v, again, err, replayed)
				}
			}
			check.Equal(t, s.Effects(call.Operation()), 1, "effects")
		})
	}
}

// TestWithoutTransactions: the same over a store without transactions.
func TestWithoutTransactions(t *testing.T) {
	t.Parallel()
	call := semel.Define("op", semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Lease: lease}).Call(me, "k", "in")
	for at, want := range map[semeltest.Point]int{
		semeltest.BeforeFunction: 1, semeltest.AfterFunction: 2, semeltest.AfterOutcome: 1, lostReply: 1,
	} {
		s, runs := plainstore.New(plainstore.Options{}), 0
		run := func(s store.Store) error {
			e := check.Must(semel.NewRunner(s, semel.Options{Survive: store.NoFailure}))(t)
			t.Cleanup(func() { _ = e.Close(t.Context()) })
			_, _, err := semel.Do(t.Context(), e, call, func(context.Context) (string, error) { runs++; return "v", nil })
			return err
		}
		if at == lostReply {
			check.NoError(t, run(semeltest.LoseReplyRunner(t, s)), "after a lost reply")
		} else {
			_ = run(semeltest.CrashRunner(t, s, at))
		}
		semeltest.Advance(t, s, lease)
		check.NoError(t, run(s), "%s: a retry", at)
		check.Equal(t, runs, want, "%s: runs", at)
	}
}

// lostReply is no point of a crash.
const lostReply semeltest.Point = 0

// TestCrashOfADequeue: the task of a worker that dies runs when its lease has expired.
func TestCrashOfADequeue(t *testing.T) {
	t.Parallel()
	for _, at := range []semeltest.Point{semeltest.BeforeFunction, semeltest.AfterFunction, semeltest.AfterOutcome} {
		mem := memory.New(memory.Options{})
		op := semel.Define("task", semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Lease: lease, Retry: &semel.Retry{}})
		check.Must(semel.Enqueue(t.Context(), newEngine(t, mem, op), op.Call(me, "k", "in"), semel.EnqueueOptions{}))(t)
		runs := 0
		dead := newWorker(t, newEngine(t, semeltest.Crash(t, mem, at), op), op, func(context.Context, string) (string, error) { runs++; return "v", nil })
		_, _ = dead.RunDue(t.Context())
		first := runs
		check.Equal(t, first > 0, at > semeltest.BeforeFunction, "%s: the function ran", at)
		w := newWorker(t, newEngine(t, mem, op), op, func(context.Context, string) (string, error) { runs++; return "v", nil })
		check.Equal(t, semeltest.RunDue(t, w), 0, "%s: runs before the lease ends", at)
		semeltest.Advance(t, mem, lease)
		want := 1
		if at == semeltest.AfterOutcome {
			want = 0
		}
		check.Equal(t, semeltest.RunDue(t, w), want, "%s: runs after the lease", at)
	}
}

// TestCrashOfAnOuterOperation: the inner operations reach the point first, and only the
// leader of the outer one is meant.
func TestCrashOfAnOuterOperation(t *testing.T) {
	t.Parallel()
	for _, at := range []semeltest.Point{semeltest.BeforeFunction, semeltest.AfterFunction, semeltest.AfterOutcome} {
		for name, inTx := range map[string]bool{"Do": false, "InTx": true} {
			t.Run(fmt.Sprint(at, "/", name), func(t *testing.T) {
				t.Parallel()
				mem, outer, inner := memory.New(memory.Options{}), 0, 0
				insert := semel.Define("insert", semel.OperationOptions[string]{Policy: semel.Atomic()})
				charge := semel.Define("charge", semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Lease: lease})
				policy := semel.AtLeastOnce()
				if inTx {
					policy = semel.Atomic()
				}
				pay := semel.Define("pay", semel.OperationOptions[string]{Policy: policy, Lease: lease})
				run := func(s store.TxStore[*memory.Tx]) (string, error) {
					e := newEngine(t, s)
					v, _, err := semel.Do(t.Context(), e, pay.Call(me, "1", "in"), func(ctx context.Context) (string, error) {
						outer++
						_, _, err := semel.Do(ctx, e, charge.Call(me, "1", "in"), func(context.Context) (string, error) { inner++; return "c", nil })
						if err != nil {
							return "", err
						}
						if inTx {
							return semel.InTx(ctx, e, func(context.Context, *memory.Tx) (string, error) { return "v", nil })
						}
						v, _, err := semel.DoTx(ctx, e, insert.Call(me, "1", "in"), func(context.Context, *memory.Tx) (string, error) { inner++; return "v", nil })
						return v, err
					})
					return v, err
				}
				_, _ = run(semeltest.Crash(t, mem, at, "pay"))
				runs := outer
				check.Equal(t, runs > 0, at > semeltest.BeforeFunction, "the outer function ran")
				semeltest.Advance(t, mem, lease)
				v, err := run(mem)
				check.NoError(t, err, "a retry")
				check.Equal(t, v, "v", "the outcome")
				want := 2
				if inTx {
					want = 1
				}
				check.Equal(t, inner, want, "runs of the inner functions")
				want = 1
				if at == semeltest.AfterFunction {
					want = 2
				}
				check.Equal(t, outer, want, "runs of the outer function")
			})
		}
	}
}

// TestPointsMustBeReached: a Crash or a LoseReply that does nothing fails its test.
func TestPointsMustBeReached(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(testing.TB, store.TxStore[*memory.Tx]){
		"AfterFunction": func(t testing.TB, s store.TxStore[*memory.Tx]) { semeltest.Crash(t, s, semeltest.AfterFunction) },
		"inner": func(t testing.TB, s store.TxStore[*memory.Tx]) {
			semeltest.Crash(t, s, semeltest.AfterFunction, "inner")
		},
		"LoseReply": func(t testing.TB, s store.TxStore[*memory.Tx]) { semeltest.LoseReply(t, s) },
	} {
		f := &failed{TB: t}
		use(f, memory.New(memory.Options{}))
		f.end()
		if !strings.Contains(f.text, name) {
			t.Errorf("the failure of an unused %s is %q", name, f.text)
		}
	}
}
