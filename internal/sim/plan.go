package sim

import (
	"fmt"
	"slices"

	"github.com/semelgo/semel"
)

// Plan is one exploration: a mode, who takes part, and what may go wrong.
type Plan struct {
	Name string
	Mode string
	// Callers has one letter for each: those with the same letter send the same
	// request.
	Callers string
	// Asks is how often each of them asks, until it has a final answer. Zero:
	// once.
	Asks     int
	Sweepers int
	Sweeps   int // of each sweeper; zero: one
	Healers  int
	// Scopes puts every other caller into a scope of its own.
	Scopes bool
	// Soft: the right to a record keeps off those who want the same right, and
	// no other writer.
	Soft   bool
	Budget Budget
	// Must lists what has to have happened at least once.
	Must []Mark
}

// stage is what all runs of a plan share.
type stage struct {
	plan   Plan
	mode   mode
	op     *semel.Operation[string]
	scopes []string
	calls  []map[string]semel.Call // by row and request
	cast   []role
	watch  []string // invariants; none: all

	coroutines []*coroutine // one for each of the cast
}

func newStage(p Plan, watch []string) (*stage, error) {
	i := slices.IndexFunc(modes(), func(m mode) bool { return m.name == p.Mode })
	if i < 0 {
		return nil, fmt.Errorf("there is no mode %q", p.Mode)
	}
	if p.Callers == "" {
		return nil, fmt.Errorf("plan %q has no callers", p.Name)
	}
	s := &stage{plan: p, mode: modes()[i], watch: watch, scopes: []string{"s1"}}
	if p.Scopes {
		s.scopes = append(s.scopes, "s2")
	}
	s.op = semel.Define("explored", semel.OperationOptions[string]{
		Policy: s.mode.policy(), Lease: s.mode.lease, OnError: s.mode.onError,
	})
	for _, scope := range s.scopes {
		byRequest := map[string]semel.Call{}
		for _, r := range p.Callers {
			byRequest[string(r)] = s.op.Call(semel.ScopeOf(scope), key, string(r))
		}
		s.calls = append(s.calls, byRequest)
	}
	s.cast = s.roles()
	return s, nil
}

func (s *stage) call(r request) semel.Call { return s.calls[r.row][r.fp] }

func (s *stage) watches(invariant string) bool {
	return len(s.watch) == 0 || slices.Contains(s.watch, invariant)
}

func (s *stage) coroutine(i int) *coroutine {
	for len(s.coroutines) <= i {
		s.coroutines = append(s.coroutines, newCoroutine())
	}
	return s.coroutines[i]
}

func (s *stage) close() {
	for _, co := range s.coroutines {
		co.stop()
	}
	s.coroutines = nil
}
