package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semelgo/semel/store"
)

var (
	_ store.TxStore[*Tx]   = (*Store)(nil)
	_ store.Batcher[Batch] = (*Store)(nil)
	_ store.InProcess      = (*Store)(nil)
	_ store.Auditor        = (*Store)(nil)
	_ store.Counter        = (*Store)(nil)
	_ store.Dequeuer       = (*Store)(nil)
)

const (
	defaultMaxRecords = 100_000
	defaultMaxOutcome = 1 << 20
	maxBatch          = 1000
)

// ErrFull refuses a create: the store holds Options.MaxRecords records, and none of
// them has expired. Existing records can still be changed.
var ErrFull = errors.New("semel/store/memory: full")

// Options configures a Store. The zero value has good defaults.
type Options struct {
	// MaxRecords is the largest number of records. Zero or less means 100,000.
	MaxRecords int
	// MaxOutcome is the largest outcome or input, in bytes. Zero or less means 1
	// MiB.
	MaxOutcome int
	// Now is the store's clock. Nil means time.Now: the store uses its monotonic
	// reading. Tests set it to move the store's time without sleeping. It must be safe
	// for concurrent use.
	Now func() time.Time
}

// Store keeps records in memory, and loses them with its process: the engine
// accepts it only with Options.Survive: store.NoFailure. Its methods may be called
// concurrently. It starts no goroutines and needs no closing.
type Store struct {
	options Options
	start   time.Time // start of the store's clock

	mu       sync.Mutex          // guards the fields below
	rows     map[store.ID]*row   // the committed rows
	unused   []row               // memory of rows
	earliest time.Duration       // no committed row expires before
	values   map[string][]byte   // the committed values of transactions
	holding  map[store.ID]*Tx    // the transaction that holds the right to an ID
	writing  map[store.ID]*Tx    // the transaction with an uncommitted write of an ID
	notes    map[store.ID][]note // kept for ever, oldest first
}

// New returns an empty Store.
func New(o Options) *Store {
	if o.MaxRecords <= 0 {
		o.MaxRecords = defaultMaxRecords
	}
	if o.MaxOutcome <= 0 {
		o.MaxOutcome = defaultMaxOutcome
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{
		options:  o,
		start:    o.Now(),
		rows:     make(map[store.ID]*row),
		earliest: never,
		values:   make(map[string][]byte),
		holding:  make(map[store.ID]*Tx),
		writing:  make(map[store.ID]*Tx),
		notes:    make(map[store.ID][]note),
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

// now is called under mu, so that instants have the order of the writes.
func (s *Store) now() time.Duration { return s.options.Now().Sub(s.start) }

// Get reads committed records. An open transaction does not make a record Busy for
// Get.
func (s *Store) Get(ctx context.Context, ids []store.ID) ([]store.SwapResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	answers := make([]store.SwapResult, len(ids))
	for i, id := range ids {
		answers[i] = s.rows[id].result(now)
		cloneBytes(answers[i].Record)
	}
	return answers, nil
}

// GetOne is Get of one ID, without a copy of the bytes.
func (s *Store) GetOne(ctx context.Context, id store.ID) (store.SwapResult, error) {
	if err := ctx.Err(); err != nil {
		return store.SwapResult{}, fmt.Errorf("get: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows[id].result(s.now()), nil
}

// Swap applies all changes under one lock. It fails as a whole, and has then
// written nothing, if ctx has ended, if the batch is larger than MaxBatch, or if it
// has a duplicate ID.
func (s *Store) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	if err := checkBatch(ctx, changes); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.swapAll(nil, changes), nil
}

// SwapOne is Swap of one change, without a copy of the outcome's bytes.
func (s *Store) SwapOne(ctx context.Context, c store.Change) (store.SwapResult, error) {
	if err := ctx.Err(); err != nil {
		return store.SwapResult{}, fmt.Errorf("swap: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer, _ := s.swap(nil, &c, s.now())
	return answer, nil
}

// checkBatch validates a batch as a whole.
func checkBatch(ctx context.Context, changes []store.Change) error {
	err := ctx.Err()
	if err == nil {
		err = store.CheckBatch(changes, maxBatch)
	}
	if err != nil {
		return fmt.Errorf("swap: %w", err)
	}
	return nil
}

// swapAll makes each change on its own, for tx or, if that is nil, committed. It
// copies all bytes.
func (s *Store) swapAll(tx *Tx, changes []store.Change) []store.SwapResult {
	now := s.now()
	answers := make([]store.SwapResult, len(changes))
	for i, c := range changes {
		c.To.Outcome = bytes.Clone(c.To.Outcome)
		answers[i], _ = s.swap(tx, &c, now)
		cloneBytes(answers[i].Record)
	}
	return answers
}

// swap makes one change, for tx or, if that is nil, committed, and reports whether
// this call has written. It copies neither the outcome nor the bytes of the answer.
func (s *Store) swap(tx *Tx, c *store.Change, now time.Duration) (answer store.SwapResult, wrote bool) {
	if err := c.Check(s.options.MaxOutcome); err != nil {
		return store.SwapResult{Err: fmt.Errorf("swap %w", err)}, false
	}
	id := c.To.ID
	if writer := s.writing[id]; writer != nil && writer != tx {
		return store.SwapResult{Busy: true}, false
	}
	current := s.rows[id]
	if tx != nil && tx.rows[id] != nil {
		current = tx.rows[id]
	}
	switch {
	case current.admits(c, now):
	case current.token() == c.To.Token: // the change is repeated
		return store.SwapResult{Token: c.To.Token}, false
	default:
		return current.result(now), false
	}
	if current == nil {
		if err := s.makeRoom(now); err != nil {
			return store.SwapResult{Err: err}, false
		}
		current = s.newRow(&c.To, now)
	} else {
		if tx != nil {
			copied := *current
			current = &copied
		}
		current.change(c, now)
	}
	if tx != nil {
		tx.rows[id], s.writing[id] = current, tx
	} else {
		s.commitRow(current)
	}
	return store.SwapResult{Token: c.To.Token}, true
}

// commitRow makes r the committed row of its ID.
func (s *Store) commitRow(r *row) {
	s.rows[r.ID] = r
	s.earliest = min(s.earliest, r.expire)
}
