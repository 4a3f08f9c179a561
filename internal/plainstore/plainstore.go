// Package plainstore is a store without transactions, for tests.
package plainstore

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

var (
	_ store.Auditor  = (*Store)(nil)
	_ store.Counter  = (*Store)(nil)
	_ store.Dequeuer = (*Store)(nil)
	_ store.Watcher  = (*Store)(nil)
)

// Store is a memory store that an engine uses like a server without transactions.
type Store struct {
	mem     *memory.Store
	options Options
	armed   atomic.Bool // the next reply to a write is lost

	mu      sync.Mutex
	changed chan struct{} // closed at the next write; nil: no caller waits for it
}

// Options configure a Store.
type Options struct {
	// Now is the store's clock; nil is the process's clock.
	Now func() time.Time
	// MaxBytes and MaxOutcome are as in store.Capabilities.
	MaxBytes, MaxOutcome int
	// Unordered lists records in the reverse order of their IDs, and does not say that
	// the store is Ordered.
	Unordered bool
}

// New returns an empty store.
func New(o Options) *Store {
	return &Store{mem: memory.New(memory.Options{Now: o.Now, MaxOutcome: o.MaxOutcome}), options: o}
}

// Subject returns s for the contract's tests. advance moves its clock.
func (s *Store) Subject(advance func(d time.Duration)) storetest.StoreSubject {
	return storetest.StoreSubject{Store: s, Advance: advance, Lose: s.Lose}
}

// Bare returns s without its optional interfaces.
func (s *Store) Bare() store.Store { return struct{ store.Store }{s} }

// errLost is the client's error for a lost reply.
var errLost = errors.New("plainstore: connection lost")

// Lose loses the reply to the next write.
func (s *Store) Lose() (lost func() bool) {
	s.armed.Store(true)
	return func() bool { return !s.armed.Swap(false) }
}

// Watch implements store.Watcher.
func (s *Store) Watch(ctx context.Context, id store.ID, token store.Token) error {
	for {
		s.mu.Lock()
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		results, err := s.mem.Get(ctx, []store.ID{id})
		if err != nil || results[0].Token != token {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reply returns the reply of a write, unless it is lost.
func reply[T any](s *Store, v T, err error) (T, error) {
	s.mu.Lock()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	s.mu.Unlock()
	if err == nil && s.armed.CompareAndSwap(true, false) {
		var none T
		return none, errLost
	}
	return v, err
}

// Capabilities implements store.Store.
func (s *Store) Capabilities(ctx context.Context) (store.Capabilities, error) {
	c, err := s.mem.Capabilities(ctx)
	c.Exclusion, c.Connections, c.ConcurrentSwaps = store.ExcludesNothing, nil, 2
	c.MaxBytes, c.Ordered = s.options.MaxBytes, !s.options.Unordered
	return c, err
}

// Swap implements store.Store.
func (s *Store) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	if err := store.CheckBytes(changes, s.options.MaxBytes); err != nil {
		return nil, err
	}
	results, err := s.mem.Swap(ctx, changes)
	return reply(s, results, err)
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, ids []store.ID) ([]store.SwapResult, error) {
	return s.mem.Get(ctx, ids)
}

// Scan implements store.Store.
func (s *Store) Scan(ctx context.Context, q store.Query) ([]store.Record, error) {
	if !s.options.Unordered || q.Due {
		return s.mem.Scan(ctx, q)
	}
	var all []store.Record
	for page := (store.Query{State: q.State, Operation: q.Operation, Limit: store.MaxLimit}); ; {
		records, err := s.mem.Scan(ctx, page)
		if err != nil {
			return nil, err
		}
		if all = append(all, records...); len(records) < store.MaxLimit {
			break
		}
		page.After = records[len(records)-1].ID
	}
	slices.Reverse(all)
	if q.After != (store.ID{}) {
		all = slices.DeleteFunc(all, func(r store.Record) bool { return bytes.Compare(r.ID[:], q.After[:]) >= 0 })
	}
	all = all[min(q.Skip, len(all)):]
	return all[:min(q.PageSize(), len(all))], nil
}

// Purge implements store.Store.
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	n, err := s.mem.Purge(ctx, limit)
	return reply(s, n, err)
}

// Dequeue implements store.Dequeuer.
func (s *Store) Dequeue(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	records, err := s.mem.Dequeue(ctx, d)
	if len(records) == 0 {
		return records, err
	}
	return reply(s, records, err)
}

// SwapNoted implements store.Auditor.
func (s *Store) SwapNoted(ctx context.Context, c store.Change, n store.Note) (store.SwapResult, error) {
	result, err := s.mem.SwapNoted(ctx, c, n)
	return reply(s, result, err)
}

// Notes implements store.Auditor.
func (s *Store) Notes(ctx context.Context, id store.ID) ([]store.Note, error) {
	return s.mem.Notes(ctx, id)
}

// Counts implements store.Counter.
func (s *Store) Counts(ctx context.Context) ([]store.Count, error) {
	return s.mem.Counts(ctx)
}
