package sim

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/internal/groupcommit"
	"github.com/semelgo/semel/store"
)

// Store is the store as one process sees it. It means what package store says,
// and stops its actor before every call.
type Store struct {
	owner atomic.Pointer[process] // nil once the run is over
}

// Tx is a transaction of a [Store].
type Tx struct {
	a *actor
	s *session
}

var (
	_ store.TxStore[*Tx] = (*Store)(nil)
	_ store.Auditor      = (*Store)(nil)
)

// Errors of the store.
var (
	errLost    = errors.New("connection lost")
	errAborted = errors.New("could not serialize")
	errRunOver = errors.New("the run is over")
)

// actor returns the actor that may call the store now. It fails if a timer of
// an earlier run fires.
func (s *Store) actor() (*actor, error) {
	p := s.owner.Load()
	if p == nil || p.running == nil {
		return nil, errRunOver
	}
	return p.running, nil
}

// Swap implements [store.Store].
func (s *Store) Swap(_ context.Context, changes []store.Change) ([]store.SwapResult, error) {
	a, err := s.actor()
	if err != nil {
		return nil, err
	}
	if a.task == taskFlush {
		return a.flush(changes)
	}
	answers := make([]store.SwapResult, len(changes))
	for i := range changes {
		if answers[i], err = a.swap(&changes[i]); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

func (a *actor) swap(c *store.Change) (store.SwapResult, error) {
	w, row := a.w, a.w.indexOf(c.To.ID)
	h := a.call(op{kind: opSwap, row: row, change: *c})
	if h == resultDead {
		return ghostResult(c.To), nil
	}
	if h == resultLate {
		late := *c
		w.lateRequest(lateRequest{actor: w.requester(a, c), change: &late})
	}
	var answer store.SwapResult
	if h == resultOK || h == resultReplyLost {
		answer = w.applySwap(a, c)
	}
	if h != resultOK {
		return store.SwapResult{}, errLost
	}
	a.noteResult(answer)
	w.logResult(answer, answer.Applied(*c))
	return answer, nil
}

// ghostResult is the result that a ghost receives for every record: final, with
// another owner, so that the ghost has nothing left to do.
func ghostResult(r store.Record) store.SwapResult {
	r.Token = store.Token{State: store.Succeeded, Attempt: ^uint32(0), Owner: ^uint64(0)}
	r.Outcome = []byte(`j""`)
	return store.SwapResult{Token: r.Token, Record: &r}
}

// Get implements [store.Store].
func (s *Store) Get(_ context.Context, ids []store.ID) ([]store.SwapResult, error) {
	a, err := s.actor()
	if err != nil {
		return nil, err
	}
	if a.call(op{kind: opGet, row: a.w.indexOf(ids[0])}) != resultOK {
		return nil, errLost
	}
	answers := make([]store.SwapResult, len(ids))
	for i, id := range ids {
		answers[i] = a.w.row(id).current()
		a.noteResult(answers[i])
		a.readFor(id, answers[i])
		a.w.logResult(answers[i], false)
	}
	return answers, nil
}

// Scan implements [store.Store].
func (s *Store) Scan(_ context.Context, q store.Query) ([]store.Record, error) {
	a, err := s.actor()
	if err != nil {
		return nil, err
	}
	if a.call(op{kind: opScan}) != resultOK {
		return nil, errLost
	}
	var found []store.Record
	for i := range a.w.rows {
		r := &a.w.rows[i]
		rec := r.read()
		if rec == nil || q.State != store.Absent && rec.State != q.State || q.Due && !r.due ||
			q.Operation != "" && q.Operation != rec.Operation {
			continue
		}
		found = append(found, *rec)
		a.noteResult(r.current())
	}
	a.note(uint64(len(found)))
	a.w.logf("%d found", len(found))
	return found, nil
}

// Capabilities implements [store.Store].
func (s *Store) Capabilities(context.Context) (store.Capabilities, error) {
	caps := store.Capabilities{Linearizable: true, Exclusion: store.ExcludesRecord, Ordered: true, Survives: store.PowerLoss, MaxOutcome: 1 << 20, MaxBatch: maxBatch}
	if p := s.owner.Load(); p != nil && p.w.stage.plan.Shared {
		caps.ConcurrentSwaps = 1
	}
	return caps, nil
}

const maxBatch = 1000

// SetAdvance implements [groupcommit.Scheduled].
func (s *Store) SetAdvance(older func(by time.Duration)) {
	if p := s.owner.Load(); p != nil {
		p.older = older
	}
}

// Scheduler implements [groupcommit.Scheduled].
func (s *Store) Scheduler() groupcommit.Scheduler {
	if p := s.owner.Load(); p != nil && p == p.w.shared {
		return scheduler{p}
	}
	return nil
}

// SwapNoted implements [store.Auditor]. Notes are not part of what is explored.
func (s *Store) SwapNoted(ctx context.Context, c store.Change, _ store.Note) (store.SwapResult, error) {
	answers, err := s.Swap(ctx, []store.Change{c})
	if err != nil {
		return store.SwapResult{}, err
	}
	return answers[0], nil
}

// Notes implements [store.Auditor].
func (s *Store) Notes(context.Context, store.ID) ([]store.Note, error) { return nil, nil }
