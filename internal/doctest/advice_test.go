package doctest_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

// shop is a store and an engine over it, for the advice that docs/errors.md gives.
type shop struct {
	t      *testing.T
	down   atomic.Bool // the store rejects all calls
	engine *semel.Engine[*memory.Tx]
	open   func() // opens another engine on the store, as another process would
	runs   int    // how often a function ran
}

func openShop(t *testing.T) *shop {
	s := &shop{t: t}
	mem := memory.New(memory.Options{})
	s.open = func() { s.engine = must(semel.New(mem, semel.Options{Survive: store.NoFailure})) }
	faulty := storetest.NewFaultyTx(mem, func(storetest.Call) storetest.Fault {
		if s.down.Load() {
			return storetest.Refuse()
		}
		return storetest.Fault{}
	})
	s.engine = must(semel.New(faulty, semel.Options{Survive: store.NoFailure}))
	first := s.engine
	t.Cleanup(func() {
		for _, e := range []*semel.Engine[*memory.Tx]{first, s.engine} {
			_ = e.Close(context.WithoutCancel(t.Context()))
		}
	})
	return s
}

var errNoAnswer = errors.New("no answer")

// do runs the call with a function that returns err, and counts its runs.
func (s *shop) do(call semel.Call, err error) error {
	_, _, got := semel.Do(s.t.Context(), s.engine, call, func(context.Context) (string, error) {
		s.runs++
		return "done", err
	})
	return got
}

func (s *shop) inDoubt(call semel.Call) {
	if err := s.do(call, errNoAnswer); !errors.Is(err, semel.ErrOutcomeUnknown) {
		s.t.Fatalf("the first attempt ended with %v, want ErrOutcomeUnknown", err)
	}
	s.runs = 0
}

func (s *shop) resolve(call semel.Call, to store.State) {
	must(admin.Resolve(s.t.Context(), s.engine, admin.Resolution{ID: call.ID(), To: to, Actor: "ann", Reason: "looked"}))
}

// The advice of a row: retry with the same key, use a new key, or neither.
const (
	neither = iota
	sameKey
	newKey
)

// TestAdviceOfErrors causes each error in the first table of docs/errors.md: whether the
// function ran, what VerdictOf and RetryAfter return, whether the same key leads to an
// answer when the cause is gone, and the status and the code in the page's row.
func TestAdviceOfErrors(t *testing.T) {
	order := semel.Define("order", semel.OperationOptions[string]{})
	timed := semel.Define("timed", semel.OperationOptions[string]{KeyTime: semel.UUIDv7Time})
	nameless := semel.Define("", semel.OperationOptions[string]{})
	call := order.Call(semel.ScopeOf("ann"), "k", "book")
	for name, row := range map[string]struct {
		call    semel.Call
		prepare func(s *shop) (repair func())
		fn      error // what the function returns in the tested call
		want    error
		verdict store.Verdict
		ran     bool
		waits   bool // RetryAfter is not zero
		advice  int
	}{
		"ErrInProgress": {call: call, want: semel.ErrInProgress, waits: true, advice: sameKey, prepare: func(s *shop) func() {
			a, _, err := adapter.Begin(s.t.Context(), s.engine, call)
			must(a, err)
			return func() { must(a.End("done", nil)) }
		}},
		"ErrInDoubt": {call: call, want: semel.ErrInDoubt, prepare: func(s *shop) func() {
			s.inDoubt(call)
			return func() { s.resolve(call, store.Pending) }
		}},
		"ErrOutcomeUnknown": {
			call: call, fn: errNoAnswer, want: semel.ErrOutcomeUnknown, ran: true, waits: true, advice: sameKey,
			prepare: func(s *shop) func() { return func() { s.resolve(call, store.Pending) } },
		},
		"ErrMismatch": {call: call, want: semel.ErrMismatch, advice: newKey, prepare: func(s *shop) func() {
			must(0, s.do(order.Call(semel.ScopeOf("ann"), "k", "lamp"), nil))
			return nil
		}},
		"ErrKeyExpired": {
			call: timed.Call(semel.ScopeOf("ann"), "0188d0b5-0000-7000-8000-000000000000", "book"),
			want: semel.ErrKeyExpired, advice: newKey,
		},
		"ErrResultUnavailable": {call: call, want: semel.ErrResultUnavailable, verdict: store.Committed, prepare: func(s *shop) func() {
			s.inDoubt(call)
			s.resolve(call, store.Succeeded)
			return nil
		}},
		"ErrUnavailable": {call: call, want: semel.ErrUnavailable, waits: true, advice: sameKey, prepare: func(s *shop) func() {
			s.down.Store(true)
			return func() { s.down.Store(false) }
		}},
		"ErrClosed": {call: call, want: semel.ErrClosed, waits: true, advice: sameKey, prepare: func(s *shop) func() {
			must(0, s.engine.Close(s.t.Context()))
			return s.open
		}},
		"ErrInvalid": {call: nameless.Call(semel.ScopeOf("ann"), "k", "book"), want: semel.ErrInvalid},
		"*Failure":   {call: call, fn: semel.Final(errNoAnswer), want: errFailure, verdict: store.NotCommitted, ran: true, advice: newKey},
		"*AttemptError": {
			call: call, fn: semel.NotCommitted(errNoAnswer), want: errAttempt, verdict: store.NotCommitted, ran: true,
			advice: sameKey, prepare: func(*shop) func() { return func() {} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := openShop(t)
				repair := func() {}
				if row.prepare != nil {
					repair = row.prepare(s)
				}
				s.runs = 0
				err := s.do(row.call, row.fn)
				if !is(err, row.want) || semel.VerdictOf(err) != row.verdict || (s.runs > 0) != row.ran || (semel.RetryAfter(err) > 0) != row.waits {
					t.Errorf("got %v, verdict %v, %d runs, wait %v; want %v, %v, %t, %t",
						err, semel.VerdictOf(err), s.runs, semel.RetryAfter(err), row.want, row.verdict, row.ran, row.waits)
				}
				p := semelhttp.ProblemOf(err)
				mustHaveRow(t, "| `"+name+"` | "+strconv.Itoa(p.Status)+" `"+p.Code+"`")
				switch row.advice {
				case sameKey:
					repair()
					if again := s.do(row.call, nil); again != nil {
						t.Errorf("retry with the same key: %v, want a result", again)
					}
				case newKey:
					if again := s.do(row.call, nil); !is(again, row.want) {
						t.Errorf("retry with the same key: %v, want the same error", again)
					}
				}
			})
		})
	}
}

// errFailure and errAttempt represent the error types that have no variable.
var (
	errFailure = errors.New("*semel.Failure")
	errAttempt = errors.New("*semel.AttemptError")
)

func is(err, want error) bool {
	if _, ok := errtype.Find[*semel.Failure](err); ok {
		return errors.Is(want, errFailure)
	}
	if _, ok := errtype.Find[*semel.AttemptError](err); ok && errors.Is(want, errAttempt) {
		return true
	}
	return errors.Is(err, want)
}
