package semel_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

// process is one process of those that share a store: an engine, its way to the
// store, and what it saw.
type process struct {
	*semel.Engine[*memory.Tx]
	faults *faulty
	mem    *memory.Store // of start and solo
	seen   *seen
}

// start starts a process over mem. It is closed when the test ends.
func start(t *testing.T, mem *memory.Store, o semel.Options) *process {
	t.Helper()
	f := newFaulty(mem)
	p := launch(t, f, storetest.WithBatches[*memory.Tx, memory.Batch](f, mem), o)
	p.mem = mem
	return p
}

// startOn starts a process over f.
func startOn(t *testing.T, f *faulty, o semel.Options) *process {
	t.Helper()
	return launch(t, f, f, o)
}

// startPlain is startOn without the optional interfaces of the store.
func startPlain(t *testing.T, f *faulty, o semel.Options) *process {
	t.Helper()
	return launch(t, f, f.Plain(), o)
}

func launch(t *testing.T, f *faulty, s store.TxStore[*memory.Tx], o semel.Options) *process {
	t.Helper()
	p := &process{faults: f, seen: new(seen)}
	if o.Observer == nil {
		o.Observer = p.seen
	}
	o.Survive = store.NoFailure
	engine, err := semel.New(s, o)
	check.Require(t, err, "New")
	p.Engine = engine
	t.Cleanup(func() {
		f.Decide(nil) // Close waits for outcomes that are not recorded
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = engine.Close(ctx)
	})
	return p
}

// pair starts two processes over one store.
func pair(t *testing.T, o semel.Options) (p, other *process, mem *memory.Store) {
	t.Helper()
	p, mem = solo(t, o)
	return p, start(t, mem, o), mem
}

// solo starts a store and one process over it.
func solo(t *testing.T, o semel.Options) (*process, *memory.Store) {
	t.Helper()
	mem := memory.New(memory.Options{})
	return start(t, mem, o), mem
}

// seen remembers events.
type seen struct {
	mu     sync.Mutex
	events []event.Event
}

func (s *seen) Observe(_ context.Context, e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

func (s *seen) count(kind event.Kind) int {
	n := 0
	for _, e := range s.all() {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func (s *seen) kinds() []event.Kind {
	var kinds []event.Kind
	for _, e := range s.all() {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// last returns the last event of the kind, or none.
func (s *seen) last(kind event.Kind) (last event.Event) {
	for _, e := range s.all() {
		if e.Kind == kind {
			last = e
		}
	}
	return last
}

func (s *seen) all() []event.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// want fails the test unless each kind was seen.
func (s *seen) want(t *testing.T, kinds ...event.Kind) {
	t.Helper()
	for _, k := range kinds {
		if s.count(k) == 0 {
			t.Errorf("events %v, want %q among them", s.kinds(), k)
		}
	}
}

// wantNone fails the test if one of the kinds was seen.
func (s *seen) wantNone(t *testing.T, kinds ...event.Kind) {
	t.Helper()
	for _, k := range kinds {
		if s.count(k) != 0 {
			t.Errorf("events %v, want no %q", s.kinds(), k)
		}
	}
}

// answer is what a caller got.
type answer struct {
	v        string
	replayed bool
	err      error
}

func do(ctx context.Context, p *process, c semel.Call, fn handler) answer {
	v, replayed, err := semel.Do(ctx, p, c, fn)
	return answer{v, replayed, err}
}

func doTx(ctx context.Context, p *process, c semel.Call, fn txHandler) answer {
	v, replayed, err := semel.DoTx(ctx, p.Engine, c, fn)
	return answer{v, replayed, err}
}

// run is fn as the function of Do, in the transaction of InTx where the policy is Atomic.
func (p *process) run(fn handler) handler {
	return func(ctx context.Context) (string, error) {
		v, err := semel.InTx(ctx, p.Engine, func(ctx context.Context, _ *memory.Tx) (string, error) { return fn(ctx) })
		if field, ok := errtype.Find[*semel.FieldError](err); ok && field.Field == "Policy" {
			return fn(ctx)
		}
		return v, err
	}
}

// later runs ask on a goroutine of its own.
func later(ask func() answer) <-chan answer {
	answers := make(chan answer, 1)
	go func() { answers <- ask() }()
	return answers
}

// blocked is later in a bubble: it returns when ask waits for something.
func blocked(ask func() answer) <-chan answer {
	answers := later(ask)
	synctest.Wait()
	return answers
}

// later asks on a goroutine of its own, and returns when it waits for something.
func (d entryPoint) later(t *testing.T, p *process, call semel.Call, fn handler) <-chan answer {
	t.Helper()
	return blocked(func() answer { return d.ask(t.Context(), p, call, fn) })
}

// wantEffect fails the test unless the effect called name is there, or is not.
func wantEffect(t *testing.T, mem *memory.Store, name string, want bool) {
	t.Helper()
	if _, got := mem.Value(name); got != want {
		t.Errorf("the effect %q is there: %v, want %v", name, got, want)
	}
}

// record returns the current record of c, without faults.
func record(t *testing.T, mem *memory.Store, c semel.Call) store.Record {
	t.Helper()
	answers, err := mem.Get(t.Context(), []store.ID{c.ID()})
	check.Require(t, err, "Get")
	if answers[0].Record == nil {
		return store.Record{}
	}
	return *answers[0].Record
}

func wantState(t *testing.T, mem *memory.Store, c semel.Call, want store.State) store.Record {
	t.Helper()
	r := record(t, mem, c)
	check.Equal(t, r.State, want, "the record")
	return r
}

// want checks a caller's answer.
func (a answer) want(t *testing.T, v string, replayed bool) {
	t.Helper()
	if a.err != nil || a.v != v || a.replayed != replayed {
		t.Errorf("got %q, replayed %v, %v; want %q, replayed %v, no error", a.v, a.replayed, a.err, v, replayed)
	}
}

// wantErr checks that a caller's error is each of the targets, and that it
// comes with nothing else.
func (a answer) wantErr(t *testing.T, targets ...error) {
	t.Helper()
	if a.v != "" || a.replayed {
		t.Errorf("with %v came %q, replayed %v; want nothing", a.err, a.v, a.replayed)
	}
	for _, target := range targets {
		check.ErrorIs(t, a.err, target, "got error")
	}
}

// wantNoResult checks that the caller learned of a success whose result is not available.
func (a answer) wantNoResult(t *testing.T) {
	t.Helper()
	if !errors.Is(a.err, semel.ErrResultUnavailable) || !a.replayed {
		t.Errorf("got replayed %v, %v, want ErrResultUnavailable", a.replayed, a.err)
	}
}

// wantRunNow checks the AttemptError in a caller's error.
func (a answer) wantRunNow(t *testing.T, v store.Verdict, s store.State) {
	t.Helper()
	expectedEnd, ok := errtype.Find[*semel.AttemptError](a.err)
	if !ok {
		t.Errorf("got error %v, want an AttemptError", a.err)
		return
	}
	if expectedEnd.Verdict != v || expectedEnd.State != s {
		t.Errorf("got verdict %v and state %v (%v), want %v and %v", expectedEnd.Verdict, expectedEnd.State, a.err, v, s)
	}
}

// pass lets d go by; in a bubble that takes no time.
func pass(d time.Duration) { <-time.After(d) }

// bubble runs test in a synctest bubble.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// eachPair runs test for each pair of rows, in a bubble of its own.
func eachPair[A, B any](t *testing.T, as map[string]A, bs map[string]B, test func(t *testing.T, a A, b B)) {
	t.Helper()
	t.Parallel()
	for name, a := range as {
		t.Run(name, func(t *testing.T) { eachInBubble(t, bs, func(t *testing.T, b B) { test(t, a, b) }) })
	}
}

// byName returns rows by their names.
func byName[Row any](name func(Row) string, rows ...Row) map[string]Row {
	all := map[string]Row{}
	for _, row := range rows {
		all[name(row)] = row
	}
	return all
}

// eachInBubble runs test for each row, in a bubble of its own.
func eachInBubble[Row any](t *testing.T, rows map[string]Row, test func(t *testing.T, row Row)) {
	t.Helper()
	t.Parallel()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) { bubble(t, func(t *testing.T) { test(t, row) }) })
	}
}

// edges returns the changes of a process as edges between states.
func edges(changes []store.Change) []string {
	var names []string
	for _, c := range changes {
		names = append(names, c.If.State.String()+"→"+c.To.State.String())
	}
	return names
}

// wantEdges checks a process's changes, with their numbers.
func wantEdges(t *testing.T, w *faulty, want ...string) {
	t.Helper()
	if got := edges(w.Changes()); !slices.Equal(got, want) {
		t.Errorf("requested %v, want %v", got, want)
	}
}

var errBoom = errors.New("boom")

func plain(name string, o semel.OperationOptions[string]) *semel.Operation[string] {
	return semel.Define(name, o)
}

var (
	me = semel.ScopeOf("me")
	// theCall is the call of the tests that need no options and no other key.
	theCall = plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
)
