package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

type faulty = storetest.FaultyTx[*memory.Tx]

// faultCall makes one call that writes the record of recordOf or reads it.
type faultCall struct {
	method string
	make   func(ctx context.Context, f *faulty) (store.Verdict, error)
}

var recordOf = store.Change{To: store.Record{
	ID: store.NewID("op", "me", "k"), Token: store.Token{State: store.Pending, Owner: 1}, Operation: "op", Scope: "me", Key: "k",
}}

func faultCalls() []faultCall {
	ids := []store.ID{recordOf.To.ID}
	one := func(s store.SwapResult, err error) (store.Verdict, error) {
		if err == nil && !s.Applied(recordOf) {
			err = fmt.Errorf("not applied: %+v", s)
		}
		return 0, err
	}
	return []faultCall{
		{"Swap", func(ctx context.Context, f *faulty) (store.Verdict, error) {
			all, err := f.Swap(ctx, []store.Change{recordOf})
			return one(append(all, store.SwapResult{})[0], err)
		}},
		{"SwapNoted", func(ctx context.Context, f *faulty) (store.Verdict, error) {
			return one(f.SwapNoted(ctx, recordOf, store.Note{Actor: "ann", Reason: "test"}))
		}},
		{"Atomic", func(ctx context.Context, f *faulty) (store.Verdict, error) {
			return f.Atomic(ctx, recordOf.To.ID, true, func(context.Context, *memory.Tx, store.SwapResult) (*store.Change, error) {
				c := recordOf
				return &c, nil
			})
		}},
		{"Get", func(ctx context.Context, f *faulty) (store.Verdict, error) { _, err := f.Get(ctx, ids); return 0, err }},
		{"Scan", func(ctx context.Context, f *faulty) (store.Verdict, error) {
			_, err := f.Scan(ctx, store.Query{State: store.Pending, Limit: 1})
			return 0, err
		}},
		{"Purge", func(ctx context.Context, f *faulty) (store.Verdict, error) { _, err := f.Purge(ctx, 1); return 0, err }},
		{"Notes", func(ctx context.Context, f *faulty) (store.Verdict, error) {
			_, err := f.Notes(ctx, ids[0])
			return 0, err
		}},
		{"Dequeue", func(ctx context.Context, f *faulty) (store.Verdict, error) {
			_, err := f.Dequeue(ctx, store.Dequeue{Operation: "other", Limit: 1, Owner: 1, Lease: time.Second})
			return 0, err
		}},
		{"Reread", func(ctx context.Context, f *faulty) (store.Verdict, error) {
			_, err := f.Dequeue(ctx, store.Dequeue{Operation: "other", Owner: 1, Reread: true})
			return 0, err
		}},
	}
}

// TestFaults: each fault does to each call what it says.
func TestFaults(t *testing.T) {
	t.Parallel()
	const none, one = store.Absent, store.Pending
	for _, tt := range []struct {
		name    string
		fault   storetest.Fault
		err     error         // of all calls
		wrote   store.State   // by Swap and SwapNoted
		verdict store.Verdict // of Atomic
		wroteTx store.State   // by Atomic
		took    time.Duration // until the end of the call
		gated   bool
	}{
		{name: "none", wrote: one, verdict: store.Committed, wroteTx: one},
		{name: "Refuse", fault: storetest.Refuse(), err: storetest.ErrInjected, verdict: store.NotCommitted},
		{name: "Abort", fault: storetest.Abort(), err: storetest.ErrInjected, verdict: store.Unknown},
		{name: "Lose", fault: storetest.Lose(), err: storetest.ErrInjected, wrote: one, verdict: store.Unknown, wroteTx: one},
		{name: "Hang", fault: storetest.Fault{Hang: true}, err: context.DeadlineExceeded, verdict: store.NotCommitted, took: time.Minute},
		{name: "Mute", fault: storetest.Fault{Mute: true}, err: context.DeadlineExceeded, wrote: one, verdict: store.Unknown, wroteTx: one, took: time.Minute},
		{name: "Gate", gated: true, err: context.DeadlineExceeded, verdict: store.NotCommitted, took: time.Minute},
		{name: "Twice", fault: storetest.Fault{Twice: true}, wrote: one, verdict: store.Committed, wroteTx: one},
	} {
		for _, c := range faultCalls() {
			t.Run(tt.name+"/"+c.method, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					mem := memory.New(memory.Options{})
					fault := tt.fault
					if tt.gated {
						fault.Gate = make(chan struct{})
					}
					f := storetest.NewFaultyTx(mem, func(storetest.Call) storetest.Fault { return fault })
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					began := time.Now()
					verdict, err := c.make(ctx, f)
					wrote, wantVerdict := tt.wrote, store.Verdict(0)
					switch c.method {
					case "Atomic":
						wrote, wantVerdict = tt.wroteTx, tt.verdict
					case "Swap", "SwapNoted":
					default:
						wrote = none
					}
					if !errors.Is(err, tt.err) || verdict != wantVerdict || time.Since(began) != tt.took {
						t.Errorf("%v, %v after %v, want %v, %v after %v", verdict, err, time.Since(began), wantVerdict, tt.err, tt.took)
					}
					check.Equal(t, stateOf(t, mem), wrote, "the record")
					if n := f.CallsOf(c.method); n != 1 || f.Calls() != 1 {
						t.Errorf("%d calls, %d of the method, want one", f.Calls(), n)
					}
				})
			})
		}
	}
}

func stateOf(t *testing.T, mem *memory.Store) store.State {
	t.Helper()
	all := check.Must(mem.Get(t.Context(), []store.ID{recordOf.To.ID}))(t)
	return all[0].Token.State
}

// TestFaultsOfTransactions: the faults that only transactions have.
func TestFaultsOfTransactions(t *testing.T) {
	t.Parallel()
	errOdd := errors.New("odd")
	for name, tt := range map[string]struct {
		fault   storetest.Fault
		fnErr   error
		verdict store.Verdict
		errs    []error
		state   store.State
	}{
		"rolled back":             {storetest.Fault{Rollback: errOdd}, nil, store.NotCommitted, []error{errOdd}, store.Absent},
		"rolled back, failed":     {storetest.Fault{Rollback: errOdd}, errBroken, store.NotCommitted, []error{errOdd, errBroken}, store.Absent},
		"rollback's reply lost":   {storetest.Abort(), errBroken, store.Unknown, []error{errBroken}, store.Absent},
		"failed, no commit":       {storetest.Lose(), errBroken, store.NotCommitted, []error{errBroken}, store.Absent},
		"committed with an error": {storetest.Fault{Extra: errOdd}, nil, store.Committed, []error{errOdd}, store.Pending},
		"seen as busy":            {storetest.Fault{Busy: true}, nil, store.Committed, nil, store.Pending},
		"seen as another":         {storetest.Fault{Result: &store.SwapResult{Token: store.Token{State: store.Failed}}}, nil, store.Committed, nil, store.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mem, order := memory.New(memory.Options{}), ""
			tt.fault.Commit, tt.fault.Reply = func() { order += "commit " }, func() { order += "reply" }
			f := storetest.NewFaultyTx(mem, func(storetest.Call) storetest.Fault { return tt.fault })
			verdict, err := f.Atomic(t.Context(), recordOf.To.ID, true, func(_ context.Context, _ *memory.Tx, current store.SwapResult) (*store.Change, error) {
				if current.Busy != tt.fault.Busy || tt.fault.Result != nil && current != *tt.fault.Result {
					t.Errorf("the function sees %+v", current)
				}
				if tt.fnErr != nil {
					return nil, tt.fnErr
				}
				c := recordOf
				return &c, nil
			})
			for _, want := range tt.errs {
				check.ErrorIs(t, err, want, "error")
			}
			if verdict != tt.verdict || len(tt.errs) == 0 && err != nil || stateOf(t, mem) != tt.state {
				t.Errorf("%v, %v, and the record is %v; want %v and %v", verdict, err, stateOf(t, mem), tt.verdict, tt.state)
			}
			if want := map[bool]string{true: "commit reply", false: "reply"}[tt.fnErr == nil]; order != want {
				t.Errorf("called %q, want %q", order, want)
			}
			if n := len(f.Changes()); (n == 1) != (tt.fnErr == nil) {
				t.Errorf("%d changes are recorded", n)
			}
		})
	}
}

// TestOpenTransaction: it is answered before it commits.
func TestOpenTransaction(t *testing.T) {
	t.Parallel()
	mem := memory.New(memory.Options{})
	f := storetest.NewFaultyTx(mem, func(storetest.Call) storetest.Fault { return storetest.Fault{Open: true} })
	verdict, err := faultCalls()[2].make(t.Context(), f)
	if verdict != store.Unknown || err == nil || stateOf(t, mem) != store.Absent {
		t.Errorf("%v, %v, and the record is %v; want an unknown verdict and no record", verdict, err, stateOf(t, mem))
	}
	if err := f.Release(); err != nil || stateOf(t, mem) != store.Pending {
		t.Errorf("Release: %v, and the record is %v; want the commit", err, stateOf(t, mem))
	}
}

// TestInjectedAnswers take the place of the store's.
func TestInjectedAnswers(t *testing.T) {
	t.Parallel()
	want := store.SwapResult{Token: store.Token{State: store.InDoubt}}
	for _, fault := range []storetest.Fault{{Busy: true}, {Result: &want}} {
		mem := memory.New(memory.Options{})
		f := storetest.NewFaultyTx(mem, func(storetest.Call) storetest.Fault { return fault })
		swapped, err1 := f.Swap(t.Context(), []store.Change{recordOf})
		inTx, err2 := f.SwapTx(t.Context(), nil, []store.Change{recordOf})
		got, err3 := f.Get(t.Context(), []store.ID{recordOf.To.ID})
		noted, err4 := f.SwapNoted(t.Context(), recordOf, store.Note{})
		for _, r := range []store.SwapResult{swapped[0], inTx[0], got[0], noted} {
			if fault.Busy != r.Busy || fault.Result != nil && r != want {
				t.Errorf("%+v: answer %+v", fault, r)
			}
		}
		if err := errors.Join(err1, err2, err3, err4); err != nil || stateOf(t, mem) != store.Absent {
			t.Errorf("%v, and the record is %v; want no change", err, stateOf(t, mem))
		}
	}
}

// TestFaultyCounts its calls, and Decide counts anew.
func TestFaultyCounts(t *testing.T) {
	t.Parallel()
	var calls []storetest.Call
	decide := func(c storetest.Call) storetest.Fault { calls = append(calls, c); return storetest.Fault{} }
	f := storetest.NewFaultyTx(memory.New(memory.Options{}), decide)
	for _, c := range append(faultCalls()[:4], faultCalls()[0]) {
		_, _ = c.make(t.Context(), f)
	}
	last := calls[len(calls)-1]
	if last.N != 5 || last.MethodN != 2 || last.Method != "Swap" || last.To() != store.Pending || !last.Writes() || calls[3].Writes() {
		t.Errorf("the calls are %+v", calls)
	}
	if now, most := f.Open(); now != 0 || most != 1 {
		t.Errorf("%d calls are open, and were %d at most; want 0 and 1", now, most)
	}
	f.Decide(nil)
	if f.Calls() != 0 || f.CallsOf("Swap") != 0 || len(f.Changes()) != 4 {
		t.Errorf("%d calls and %d changes after Decide, want 0 and 4", f.Calls(), len(f.Changes()))
	}
}

// TestPlainFaulty has none of the optional interfaces, and Adjust changes what the
// store says of itself.
func TestPlainFaulty(t *testing.T) {
	t.Parallel()
	f := storetest.NewFaultyTx(memory.New(memory.Options{}), nil)
	s := f.Plain()
	_, dequeues := s.(store.Dequeuer)
	_, audits := s.(store.Auditor)
	if dequeues || audits {
		t.Error("a plain store is a Dequeuer or an Auditor")
	}
	f.Adjust = func(_ context.Context, c *store.Capabilities) error { c.MaxBatch = 3; return errBroken }
	if c, err := s.Capabilities(t.Context()); c.MaxBatch != 3 || !errors.Is(err, errBroken) {
		t.Errorf("Capabilities = %+v, %v", c, err)
	}
	if _, err := storetest.NewFaultyTx(s, nil).Dequeue(t.Context(), store.Dequeue{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Dequeue of a store that is no Dequeuer: %v", err)
	}
}
