package semel_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

const hour = time.Hour

// hourlyOptions define an operation whose keys are remembered by the hour.
func hourlyOptions() *semel.Operation[string] {
	return plain("op", semel.OperationOptions[string]{Generation: hour})
}

// clocked starts a process whose clock is ahead.
func clocked(t *testing.T, mem *memory.Store, ahead time.Duration) *process {
	t.Helper()
	return start(t, mem, semel.Options{Clock: func() time.Time { return time.Now().Add(ahead) }})
}

// records lists the store's records.
func records(t *testing.T, mem *memory.Store) []store.Record {
	t.Helper()
	all, err := mem.Scan(t.Context(), store.Query{})
	check.Require(t, err, "Scan")
	return all
}

// TestGenerationsRemember for one to two of them: the answer is the same bytes in
// the next one, and after that the key is forgotten, purged or not.
func TestGenerationsRemember(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		call := hourlyOptions().Call(me, "k", "in")
		pass(hour - time.Second) // the bubble's time begins with a generation
		doTx(t.Context(), p, call, puts("first", "v")).want(t, "v", false)
		doTx(t.Context(), p, call, neverTx(t)).want(t, "v", true)
		pass(hour)
		doTx(t.Context(), p, call, neverTx(t)).want(t, "v", true)
		all := records(t, mem)
		if len(all) != 2 || all[0].Token != all[1].Token || string(all[0].Outcome) != string(all[1].Outcome) {
			t.Errorf("the records are %+v, want two that say the same", all)
		}
		pass(2 * time.Second)
		doTx(t.Context(), p, call, puts("second", "w")).want(t, "w", false)
		pass(2 * hour)
		check.Result(admin.Purge(t.Context(), p, 10))(t, 4, "Purge")
	})
}

// TestGenerationsConcurrently: of two whose clocks say generations that follow each
// other, one has its effect, whichever commits first, and both have its answer.
func TestGenerationsConcurrently(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][2]time.Duration{"this first": {0, hour / 2}, "next first": {hour / 2, 0}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mem := memory.New(memory.Options{})
				pass(hour - time.Minute)
				early, late := clocked(t, mem, order[0]), clocked(t, mem, order[1])
				call := hourlyOptions().Call(me, "k", "in")
				gate := make(chan struct{})
				var once sync.Once
				second := later(func() answer {
					return doTx(t.Context(), late, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
						once.Do(func() { <-gate })
						return puts("late", "late")(ctx, tx)
					})
				})
				synctest.Wait()
				doTx(t.Context(), early, call, puts("early", "early")).want(t, "early", false)
				close(gate)
				(<-second).want(t, "early", true)
				wantEffect(t, mem, "early", true)
				wantEffect(t, mem, "late", false)
				late.seen.want(t, event.Fenced)
			})
		})
	}
}

// TestGenerationsAfterAnAbort: an attempt that was rolled back blocks no other.
func TestGenerationsAfterAnAbort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		pass(hour - time.Minute)
		early, late := clocked(t, mem, 0), clocked(t, mem, hour/2)
		call := hourlyOptions().Call(me, "k", "in")
		for _, err := range []error{errBoom, semel.Final(errBoom), semel.NotCommitted(errBoom)} {
			a := doTx(t.Context(), early, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
				_, _ = puts("early", "v")(ctx, tx)
				return "", err
			})
			a.wantErr(t, errBoom)
			a.wantRunNow(t, store.NotCommitted, store.Absent)
		}
		if all := records(t, mem); len(all) != 0 {
			t.Errorf("after errors the records are %+v, want none: no failure is kept", all)
		}
		doTx(t.Context(), late, call, puts("late", "v")).want(t, "v", false)
		doTx(t.Context(), early, call, neverTx(t)).want(t, "v", true)
		wantEffect(t, mem, "early", false)
	})
}

// TestGenerationsWithUnknownCommit: the certificate is of one record, and
// the other shares its fate.
func TestGenerationsWithUnknownCommit(t *testing.T) {
	t.Parallel()
	for _, commit := range []fault{commitApplied(), commitDropped()} {
		t.Run(commit.Name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, mem := solo(t, semel.Options{})
				call := hourlyOptions().Call(me, "k", "in")
				p.faults.Decide(everyCommit(commit))
				a := doTx(t.Context(), p, call, puts("e", "v"))
				p.faults.Decide(nil)
				committed := commit.Rollback == nil
				wantEffect(t, mem, "e", committed)
				if committed {
					a.want(t, "v", false)
					pass(hour)
					doTx(t.Context(), p, call, neverTx(t)).want(t, "v", true)
					return
				}
				a.wantRunNow(t, store.NotCommitted, store.Pending)
				if all := records(t, mem); len(all) != 1 || all[0].State != store.Pending {
					t.Errorf("the records are %+v, want the certificate alone", all)
				}
				doTx(t.Context(), p, call, puts("e", "w")).want(t, "w", false)
				pass(hour)
				doTx(t.Context(), p, call, neverTx(t)).want(t, "w", true)
			})
		})
	}
}

// TestGenerationsAfterACertificate: the certificate of a caller whose clock is
// ahead is in the place of the successor.
func TestGenerationsAfterACertificate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		pass(hour - time.Minute)
		early, late := clocked(t, mem, 0), clocked(t, mem, hour/2)
		call := hourlyOptions().Call(me, "k", "in")
		late.faults.Decide(everyCommit(commitDropped()))
		doTx(t.Context(), late, call, puts("late", "v")).wantRunNow(t, store.NotCommitted, store.Pending)
		late.faults.Decide(nil)
		other := hourlyOptions().Call(me, "k", "another input")
		doTx(t.Context(), early, other, neverTx(t)).wantErr(t, semel.ErrMismatch)
		doTx(t.Context(), early, call, puts("early", "v")).want(t, "v", false)
		doTx(t.Context(), late, call, neverTx(t)).want(t, "v", true)
		doTx(t.Context(), late, other, neverTx(t)).wantErr(t, semel.ErrMismatch)
		doTx(t.Context(), early, other, neverTx(t)).wantErr(t, semel.ErrMismatch)
	})
}

// TestGenerationsThatEnd while a function runs: it is rolled back and run again.
func TestGenerationsThatEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		pass(hour - time.Second)
		var runs counted
		fn := func(ctx context.Context, tx *memory.Tx) (string, error) {
			return runs.of(func(ctx context.Context) (string, error) {
				pass(2 * time.Second)
				return puts("e", "v")(ctx, tx)
			})(ctx)
		}
		doTx(t.Context(), p, hourlyOptions().Call(me, "k", "in"), fn).want(t, "v", false)
		runs.want(t, 2)
		if all := records(t, mem); len(all) != 2 {
			t.Errorf("the records are %+v, want two", all)
		}
		p.seen.want(t, event.Retried)
	})
}

// TestGenerationsWithHeldNextRecord: the caller waits for the transaction that
// holds the record, or gets ErrInProgress.
func TestGenerationsWithHeldNextRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		waits := start(t, mem, semel.Options{Wait: hour / 4})
		call := hourlyOptions().Call(me, "k", "in")
		for _, q := range []*process{p, waits} {
			q.faults.Decide(func(r request) fault { return fault{Busy: r.Method == "SwapTx" && r.MethodN == 1} })
		}
		doTx(t.Context(), p, call, puts("e", "v")).wantErr(t, semel.ErrInProgress)
		wantEffect(t, mem, "e", false)
		doTx(t.Context(), waits, call, puts("e", "v")).want(t, "v", false)
	})
}

// TestGenerationsAreWhole: where the next generation has no place or no answer,
// nothing is committed.
func TestGenerationsAreWhole(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		call := hourlyOptions().Call(me, "k", "in")
		for _, f := range []fault{{Result: &store.SwapResult{Err: store.ErrNoPartition}}, {Result: &store.SwapResult{Err: errBoom}}, {Before: errCut}} {
			p.faults.Decide(func(r request) fault {
				if r.Method == "SwapTx" {
					return f
				}
				return fault{}
			})
			doTx(t.Context(), p, call, puts("e", "v")).wantErr(t, semel.ErrUnavailable)
			wantEffect(t, mem, "e", false)
		}
		p.faults.Decide(nil)
		if all := records(t, mem); len(all) != 0 {
			t.Errorf("the records are %+v, want none", all)
		}
		doTx(t.Context(), p, call, puts("e", "v")).want(t, "v", false)
	})
}

// endedFirstStore is a store under functions that have committed before the successor is
// written.
type endedFirstStore struct{ selfCommittingStore }

func (endedFirstStore) SwapTx(context.Context, *memory.Tx, []store.Change) ([]store.SwapResult, error) {
	return nil, errEndedItself
}

// TestGenerationsOfAFunctionThatCommits: the function commits the transaction
// itself, which is not allowed. The call succeeds, and both records have the
// outcome.
func TestGenerationsOfAFunctionThatCommits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		engine := check.Must(semel.New(endedFirstStore{selfCommittingStore{mem}}, semel.Options{Survive: store.NoFailure}))(t)
		p := &process{Engine: engine}
		doTx(t.Context(), p, hourlyOptions().Call(me, "k", "in"), puts("e", "v")).want(t, "v", false)
		wantEffect(t, mem, "e", true)
		pass(hour)
		doTx(t.Context(), p, hourlyOptions().Call(me, "k", "in"), neverTx(t)).want(t, "v", true)
		check.NoError(t, engine.Close(t.Context()))
	})
}

// TestGetFindsGenerations of operations that the engine was given.
func TestGetFindsGenerations(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := hourlyOptions()
		p, _ := solo(t, semel.Options{Operations: []semel.Declared{op}})
		doTx(t.Context(), p, op.Call(me, "k", "in"), puts("e", "v")).want(t, "v", false)
		for _, want := range []bool{true, true, false} {
			if r, ok, err := admin.Get(t.Context(), p, "op", me, "k"); err != nil || ok != want || ok && r.Key != "k" {
				t.Errorf("Get = %+v, %v, %v, want it found: %v", r, ok, err, want)
			}
			pass(hour)
		}
	})
}

func TestGenerationRejected(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		o     semel.OperationOptions[string]
		field string
	}{
		"negative":      {semel.OperationOptions[string]{Generation: -hour}, "Generation"},
		"short":         {semel.OperationOptions[string]{Generation: time.Minute - 1}, "Generation"},
		"with a time":   {semel.OperationOptions[string]{Generation: hour, KeyTime: semel.UUIDv7Time}, "Generation"},
		"leased":        {semel.OperationOptions[string]{Generation: hour, Policy: semel.Atomic(), Lease: lease}, "Generation"},
		"elsewhere":     {semel.OperationOptions[string]{Generation: hour, Policy: semel.Hold()}, "Generation"},
		"that keeps":    {semel.OperationOptions[string]{Generation: hour, OnError: semel.Keep}, "Generation"},
		"that retries":  {semel.OperationOptions[string]{Generation: hour, Retry: &semel.Retry{}}, "Generation"},
		"said twice":    {semel.OperationOptions[string]{Generation: hour, Retention: hour}, "Generation"},
		"comes later":   {semel.OperationOptions[string]{Generation: hour, Redelivery: hour}, "Generation"},
		"fits":          {semel.OperationOptions[string]{Generation: hour, Redelivery: hour - 1}, ""},
		"fits, Atomic":  {semel.OperationOptions[string]{Generation: time.Minute, Policy: semel.Atomic()}, ""},
		"fits, quickly": {semel.OperationOptions[string]{Generation: hour, Optimistic: true}, ""},
	} {
		p, mem := solo(t, semel.Options{})
		call := plain("op", tt.o).Call(me, "k", "in")
		err := doTx(t.Context(), p, call, puts("e", "v")).err
		if tt.field != "" {
			if f, ok := errtype.Find[*semel.FieldError](err); !ok || f.Field != tt.field {
				t.Errorf("%s: DoTx = %v, want a FieldError of %s", name, err, tt.field)
			}
			wantEffect(t, mem, "e", false)
		} else if err != nil {
			t.Errorf("%s: DoTx = %v", name, err)
		}
	}
	p, mem := solo(t, semel.Options{})
	wantField(t, do(t.Context(), p, hourlyOptions().Call(me, "k", "in"), never(t)).err, "Generation")
	_, err := semel.Enqueue(t.Context(), p, hourlyOptions().Call(me, "k", "in"), semel.EnqueueOptions{})
	wantField(t, err, "Retry") // which it cannot have
	if all := records(t, mem); len(all) != 0 {
		t.Errorf("the records are %+v, want none", all)
	}
}
