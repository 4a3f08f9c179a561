package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// Plan is one exploration: a mode, its actors, and the possible faults.
type Plan struct {
	Name string
	Mode string
	// Callers has one letter for each: those with the same letter send the same
	// request.
	Callers string
	// Asks is how often each of them sends its request, until it has a final response. Zero:
	// once.
	Calls int
	// Again has them ask as often even when they have one.
	Again    bool
	Sweepers int
	Sweeps   int // of each sweeper; zero: one
	Healers  int
	// Enqueuers each add the call once; Queued says that every record waits from
	// the beginning.
	Enqueuers int
	Queued    bool
	// Issued: each record is that of a one-time token, which was issued before.
	Issued   bool
	Workers  int
	Rounds   int // of each worker; zero: one
	Dequeues int // how often it takes before it runs what it took; zero: once
	Claims   int // the most it takes at a time; zero: one
	// Joins has what is done in the first scope enqueue, in its own transaction, what
	// is to be done in the second.
	EnqueuesTx bool
	// Beating lets workers renew their leases themselves, before or after what
	// they run.
	Renewing bool
	// Blind: the store hands out nothing, so that workers have to look and claim.
	NoDequeue bool
	// The numbers of actors that each do one such call.
	Redrivers, Cancellers, Reschedulers, Purgers int
	// MaxErrors and MaxCrashes are those of an operation with Retry. Zero: two.
	MaxErrors, MaxCrashes int
	// Shared puts all callers into one process, which batches their changes.
	Shared bool
	// Gathers lets these changes join others that are being written, until those
	// commit.
	Joinable bool
	// Later is how many of the callers, the last ones, come when the scheduler says so;
	// the others are there from the beginning. They come in order.
	LateCallers int
	// Cached has engines answer repeats from memory.
	Cached bool
	// Scopes puts every other caller into a scope of its own, and has two records;
	// with Shared, each caller has its own.
	Scopes bool
	// Soft: the exclusive right to a record excludes other transactions that want
	// the right, but no other writer.
	Soft   bool
	Budget Budget
	// Must lists what has to have happened at least once.
	Require []Mark
}

// stage is shared by all runs of a plan.
type stage struct {
	plan      Plan
	mode      mode
	op        *semel.Operation[string]
	scopes    []string
	calls     []map[string]semel.Call // by row and request
	queued    []store.Record          // by row: as it waits from the beginning
	cancelIDs []store.ID              // by row: of the wish to cancel it
	cast      []role
	watch     []string // invariants; none: all

	coroutines []*coroutine // one for each of the cast
}

func newStage(p Plan, watch []string) (*stage, error) {
	i := slices.IndexFunc(modes(), func(m mode) bool { return m.name == p.Mode })
	if i < 0 {
		return nil, fmt.Errorf("there is no mode %q", p.Mode)
	}
	if p.Callers == "" && p.Workers == 0 {
		return nil, fmt.Errorf("plan %q has no callers and no workers", p.Name)
	}
	setDefaults(&p)
	s := &stage{plan: p, mode: modes()[i], watch: watch, scopes: []string{"s1"}}
	if p.Scopes {
		s.scopes = append(s.scopes, "s2")
	}
	for p.Scopes && p.Shared && len(s.scopes) < len(p.Callers) {
		s.scopes = append(s.scopes, "s"+strconv.Itoa(len(s.scopes)+1))
	}
	s.op = semel.Define("explored", semel.OperationOptions[string]{
		Policy: s.mode.policy(), Lease: s.mode.lease, OnError: s.mode.onError, Retry: s.retry(),
	})
	for i, scope := range s.scopes {
		byRequest, op := map[string]semel.Call{}, s.op
		if p.EnqueuesTx && i == joined && !s.mode.retry {
			// Workers run the enqueued calls, so their operation needs a Retry.
			op = semel.Define("joined", semel.OperationOptions[string]{
				Policy: s.mode.policy(), Lease: s.mode.lease, Retry: &semel.Retry{},
			})
		}
		for _, r := range p.requests() {
			byRequest[string(r)] = op.Call(semel.ScopeOf(scope), key, string(r))
			if p.Issued {
				byRequest[string(r)] = byRequest[string(r)].Issued()
			}
		}
		s.calls = append(s.calls, byRequest)
		s.cancelIDs = append(s.cancelIDs, cancelID(byRequest[p.requests()[:1]].ID()))
	}
	s.cast = s.roles()
	s.enqueue()
	return s, nil
}

func setDefaults(p *Plan) {
	for _, n := range []*int{&p.Rounds, &p.Dequeues, &p.Claims} {
		*n = max(*n, 1)
	}
	for _, n := range []*int{&p.MaxErrors, &p.MaxCrashes} {
		if *n == 0 {
			*n = 2
		}
	}
}

// requests has one letter for each request that is sent.
func (p *Plan) requests() string {
	if p.Callers == "" {
		return "x"
	}
	return p.Callers
}

// retry is how the mode's operation is tried again.
func (s *stage) retry() *semel.Retry {
	if !s.mode.retry {
		return nil
	}
	return &semel.Retry{
		MaxErrors: s.plan.MaxErrors, MaxCrashes: s.plan.MaxCrashes,
		Delay: func(int) time.Duration { return delay },
	}
}

// delay is so long that it does not pass before the scheduler says so.
const delay = 1000 * time.Hour

// enqueue finds out how a record looks that waits, for those that do from the
// beginning.
func (s *stage) enqueue() {
	create := enqueuer
	switch {
	case s.plan.Issued:
		create = issuer
	case !s.plan.Queued:
		return
	}
	w := newWorld(s, new(chooser), new(Marks))
	for i := range s.scopes {
		w.alone(role{name: "enqueuer", body: create, ask: request{row: i, fp: s.plan.requests()[:1]}})
		s.queued = append(s.queued, w.rows[i].rec)
	}
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
