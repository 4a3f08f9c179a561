package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/semelgo/semel/store"
)

var (
	_ store.TxStore[*Tx] = (*Store)(nil)
	_ store.Auditor      = (*Store)(nil)
	_ store.Counter      = (*Store)(nil)
	_ store.Dequeuer     = (*Store)(nil)

	_ store.Batcher[Batch] = (*Store)(nil)
	_ store.InProcess      = (*Store)(nil)
)

// Store keeps records in memory, and loses them with its process: the engine
// accepts it only with Options.Survive: store.NoFailure. Its methods may be called
// concurrently. It starts no goroutines and needs no closing.
type Store struct {
	options Options
	start   time.Time // start of the store's clock

	mu       sync.Mutex          // guards the fields below
	rows     rows                // the committed rows
	expiring expiries            // expiries of the committed rows
	values   map[string][]byte   // the committed values of transactions
	holding  map[store.ID]*Tx    // the transaction that holds the right to an ID
	writing  map[store.ID]*Tx    // the transaction with an uncommitted write of an ID
	creating int                 // uncommitted creates, which count as records
	notes    map[store.ID][]note // kept for ever, oldest first
}

// New returns an empty Store.
func New(o Options) *Store {
	o = o.withDefaults()
	start := time.Now()
	if o.Now != nil {
		start = o.Now()
	}
	return &Store{
		options: o,
		start:   start,
		rows:    rows{places: newIndex()},
		values:  make(map[string][]byte),
		holding: make(map[store.ID]*Tx),
		writing: make(map[store.ID]*Tx),
		notes:   make(map[store.ID][]note),
	}
}

// Capabilities never fails. Records share transactions with the values of a Tx, and
// are lost with the process.
func (s *Store) Capabilities(context.Context) (store.Capabilities, error) {
	return store.Capabilities{
		Linearizable:    true,
		Exclusion:       store.ExcludesRecord,
		Ordered:         true,
		Survives:        store.NoFailure,
		SurvivesBecause: "the memory store keeps its records in the process's memory",
		Connections:     s,
		MaxOutcome:      s.options.MaxOutcome,
		MaxBatch:        maxBatch,
	}, nil
}

// Self returns s.
func (s *Store) Self() store.Store { return s }

// Value returns the committed value of key.
func (s *Store) Value(key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cloneValue(s.values, key)
}

// now is called under mu, so that instants have the order of the writes.
func (s *Store) now() time.Duration {
	if s.options.Now == nil {
		return time.Since(s.start) // the monotonic clock only, which takes half the time
	}
	return s.options.Now().Sub(s.start)
}

// put commits r.
func (s *Store) put(r *row) {
	current := s.rows.of(r.id)
	if current == nil {
		current = s.rows.add(r.id)
	}
	place := current.place
	*current = *r
	current.place = place
	s.expires(current)
}

// room makes room for one more record, by removing expired ones if necessary.
func (s *Store) room(now time.Duration) error {
	if s.rows.len()+s.creating < s.options.MaxRecords || s.purge(1, now) == 1 {
		return nil
	}
	return fmt.Errorf("%w: %d records", ErrFull, s.options.MaxRecords)
}
