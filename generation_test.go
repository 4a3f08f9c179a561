package semel_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
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

// wantRecords returns the store's records, and ends the test if their number is not n.
func wantRecords(t *testing.T, mem *memory.Store, n int) []store.Record {
	t.Helper()
	all := check.Must(mem.Scan(t.Context(), store.Query{}))(t)
	if len(all) != n {
		t.Fatalf("the records are %+v, want %d", all, n)
	}
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
		all := wantRecords(t, mem, 2)
		check.Equal(t, all[1].Token, all[0].Token, "the token of the second record")
		check.Equal(t, string(all[1].Outcome), string(all[0].Outcome), "the outcome of the second record")
		pass(2 * time.Second)
		doTx(t.Context(), p, call, puts("second", "w")).want(t, "w", false)
		pass(2 * hour)
		check.Result(admin.Purge(t.Context(), p, 10))(t, 4, "Purge")
	})
}

// TestGenerationsConcurrently: of two whose clocks say generations that follow each
// other, one has its effect, whichever commits first, and both have its answer.
func TestGenerationsConcurrently(t *testing.T) {
	eachInBubble(t, map[string][2]time.Duration{"this first": {0, hour / 2}, "next first": {hour / 2, 0}}, func(t *testing.T, order [2]time.Duration) {
		mem := memory.New(memory.Options{})
		pass(hour - time.Minute)
		early, late := clocked(t, mem, order[0]), clocked(t, mem, order[1])
		call := hourlyOptions().Call(me, "k", "in")
		gate := make(chan struct{})
		var once sync.Once
		second := blocked(func() answer {
			return doTx(t.Context(), late, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
				once.Do(func() { <-gate })
				return puts("late", "late")(ctx, tx)
			})
		})
		doTx(t.Context(), early, call, puts("early", "early")).want(t, "early", false)
		close(gate)
		(<-second).want(t, "early", true)
		wantEffect(t, mem, "early", true)
		wantEffect(t, mem, "late", false)
		late.seen.want(t, event.Fenced)
	})
}

// TestGenerationsAfterAnAbort: an attempt that was rolled back blocks no other.
func TestGenerationsAfterAnAbort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		pass(hour - time.Minute)
		early, late := clocked(t, mem, 0), clocked(t, mem, hour/2)
		call := hourlyOptions().Call(me, "k", "in")
		for _, err := range []error{errBoom, semel.Final(errBoom), semel.NotCommitted(errBoom)} {
			a := doTx(t.Context(), early, call, failsAfter(err))
			a.wantErr(t, errBoom)
			a.wantRunNow(t, store.NotCommitted, store.Absent)
		}
		wantRecords(t, mem, 0) // no failure is kept
		doTx(t.Context(), late, call, puts("late", "v")).want(t, "v", false)
		doTx(t.Context(), early, call, neverTx(t)).want(t, "v", true)
		wantEffect(t, mem, "e", false)
	})
}

// TestGenerationsWithUnknownCommit: the certificate is of one record, and
// the other shares its fate.
func TestGenerationsWithUnknownCommit(t *testing.T) {
	eachFault(t, []fault{commitApplied(), commitDropped()}, func(t *testing.T, commit fault) {
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
		check.Equal(t, wantRecords(t, mem, 1)[0].State, store.Pending, "the certificate")
		doTx(t.Context(), p, call, puts("e", "w")).want(t, "w", false)
		pass(hour)
		doTx(t.Context(), p, call, neverTx(t)).want(t, "w", true)
	})
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
		runs := 0
		doTx(t.Context(), p, hourlyOptions().Call(me, "k", "in"), func(ctx context.Context, tx *memory.Tx) (string, error) {
			runs++
			pass(2 * time.Second)
			return puts("e", "v")(ctx, tx)
		}).want(t, "v", false)
		check.Equal(t, runs, 2, "the function ran")
		wantRecords(t, mem, 2)
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
			p.faults.Decide(failOn("SwapTx", f))
			doTx(t.Context(), p, call, puts("e", "v")).wantErr(t, semel.ErrUnavailable)
			wantEffect(t, mem, "e", false)
		}
		p.faults.Decide(nil)
		wantRecords(t, mem, 0)
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
		p := startSelfCommitting(t, endedFirstStore{selfCommittingStore{mem}})
		doTx(t.Context(), p, hourlyOptions().Call(me, "k", "in"), puts("e", "v")).want(t, "v", false)
		wantEffect(t, mem, "e", true)
		pass(hour)
		doTx(t.Context(), p, hourlyOptions().Call(me, "k", "in"), neverTx(t)).want(t, "v", true)
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
	type options = semel.OperationOptions[string]
	for name, o := range map[string]options{
		"negative":                   {Generation: -hour},
		"less than a minute":         {Generation: time.Minute - 1},
		"with a KeyTime":             {Generation: hour, KeyTime: semel.UUIDv7Time},
		"with a lease":               {Generation: hour, Policy: semel.Atomic(), Lease: lease},
		"with another policy":        {Generation: hour, Policy: semel.Hold()},
		"that keeps failures":        {Generation: hour, OnError: semel.Keep},
		"with Retry":                 {Generation: hour, Retry: &semel.Retry{}},
		"with a Retention":           {Generation: hour, Retention: hour},
		"as short as the Redelivery": {Generation: hour, Redelivery: hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, mem := solo(t, semel.Options{})
			wantField(t, doTx(t.Context(), p, plain("op", o).Call(me, "k", "in"), puts("e", "v")).err, "Generation")
			wantEffect(t, mem, "e", false)
		})
	}
	for _, o := range []options{
		{Generation: hour, Redelivery: hour - 1}, {Generation: time.Minute, Policy: semel.Atomic()}, {Generation: hour, Optimistic: true},
	} {
		p, _ := solo(t, semel.Options{})
		doTx(t.Context(), p, plain("op", o).Call(me, "k", "in"), puts("e", "v")).want(t, "v", false)
	}
	p, mem := solo(t, semel.Options{})
	wantField(t, do(t.Context(), p, hourlyOptions().Call(me, "k", "in"), never(t)).err, "Generation")
	_, err := semel.Enqueue(t.Context(), p, hourlyOptions().Call(me, "k", "in"), semel.EnqueueOptions{})
	wantField(t, err, "Retry") // which it cannot have
	wantRecords(t, mem, 0)
}
