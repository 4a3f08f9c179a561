package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/semelgo/semel/store"
)

// ErrTxDone refuses the use of a transaction that has ended.
var ErrTxDone = errors.New("semel/store/memory: transaction has ended")

// Tx is an open transaction with a handler's own writes, so that tests see them
// commit and roll back with the record. It is valid until the function that
// received it returns, and may be used concurrently.
type Tx struct {
	store *Store
	id    store.ID // of its record

	// Guarded by store.mu.
	done   bool
	values map[string][]byte
	rows   map[store.ID]*row
}

// Put sets key to a copy of value. Other transactions see it after the commit. It
// fails with ErrTxDone if the transaction has ended.
func (tx *Tx) Put(key string, value []byte) error {
	tx.store.mu.Lock()
	defer tx.store.mu.Unlock()
	if tx.done {
		return fmt.Errorf("put: %w", ErrTxDone)
	}
	tx.values[key] = bytes.Clone(value)
	return nil
}

// Get returns a copy of the value of key that this transaction has put, or else of
// the committed one.
func (tx *Tx) Get(key string) ([]byte, bool) {
	tx.store.mu.Lock()
	defer tx.store.mu.Unlock()
	value, found := tx.values[key]
	if !found {
		value, found = tx.store.values[key]
	}
	return bytes.Clone(value), found
}

// Value returns the committed value of key.
func (s *Store) Value(key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, found := s.values[key]
	return bytes.Clone(value), found
}

// SwapTx is Swap within tx. A record that it writes is Busy for other callers until
// tx ends. It fails with ErrTxDone if tx has ended, and refuses a transaction of
// another store.
func (s *Store) SwapTx(ctx context.Context, tx *Tx, changes []store.Change) ([]store.SwapResult, error) {
	if tx == nil || tx.store != s {
		return nil, errors.New("swap: the transaction is not of this store")
	}
	if err := checkBatch(ctx, changes); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if tx.done {
		return nil, fmt.Errorf("swap: %w", ErrTxDone)
	}
	return s.swapAll(tx, changes), nil
}

// Atomic never returns Unknown, and its commit cannot be delayed. With hold, an ID
// that another transaction holds or has written is Busy. Holding excludes other
// holders, but not Swap: if a Swap changes the record meanwhile, the transaction
// fails with ErrSuperseded. A nil change without an error commits.
func (s *Store) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx *Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return store.NotCommitted, fmt.Errorf("begin: %w", err)
	}
	tx, current := s.begin(id, hold)
	defer s.end(tx) // also when run panics or ends its goroutine
	last, err := run(ctx, tx, current)
	if last == nil && err != nil {
		return store.NotCommitted, err
	}
	if err := s.commit(tx, last, err == nil); err != nil {
		return store.NotCommitted, fmt.Errorf("commit: %w", err)
	}
	return store.Committed, nil
}

// Batch is a list of functions that AtomicBatch calls in order, after the change of
// the record.
type Batch []func(tx *Tx) error

// AtomicBatch never returns Unknown. It calls the functions of the batch only if
// the change can be applied. The first error rolls everything back, and so does a
// panic, which continues.
func (s *Store) AtomicBatch(ctx context.Context, change store.Change, hold bool, batch Batch) (store.SwapResult, store.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("%w: %w", store.ErrNotStarted, err)
	}
	tx, current := s.begin(change.To.ID, hold)
	defer s.end(tx) // also when a function panics or ends its goroutine
	if current.Busy {
		return current, store.NotCommitted, nil
	}
	if answer, wrote := s.writeFirst(tx, change); !wrote {
		return answer, store.NotCommitted, nil
	}
	for _, do := range batch {
		if err := do(tx); err != nil {
			return store.SwapResult{}, store.NotCommitted, err
		}
	}
	if err := s.commit(tx, nil, true); err != nil {
		return store.SwapResult{}, store.NotCommitted, err
	}
	return store.SwapResult{Token: change.To.Token}, store.Committed, nil
}

// writeFirst applies the change for tx, and reports whether this call applied it.
func (s *Store) writeFirst(tx *Tx, change store.Change) (answer store.SwapResult, wrote bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change.To.Outcome = bytes.Clone(change.To.Outcome)
	answer, wrote = s.swap(tx, &change, s.now())
	cloneBytes(answer.Record)
	return answer, wrote
}

// begin begins a transaction, and with hold takes the right to id.
func (s *Store) begin(id store.ID, hold bool) (*Tx, store.SwapResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx := &Tx{store: s, id: id, values: make(map[string][]byte), rows: make(map[store.ID]*row)}
	if hold {
		if s.holding[id] != nil || s.writing[id] != nil {
			return tx, store.SwapResult{Busy: true}
		}
		s.holding[id] = tx
	}
	current := s.rows[id].result(s.now())
	cloneBytes(current.Record)
	return tx, current
}

// commit applies last, which this call must apply, together with the writes of tx
// if they are kept. Later writes, of a goroutine that the function has left behind,
// are refused.
func (s *Store) commit(tx *Tx, last *store.Change, keep bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx.done = true
	if !keep {
		s.drop(tx)
	}
	if last != nil {
		change := *last
		change.To.Outcome = bytes.Clone(change.To.Outcome)
		switch answer, wrote := s.swap(tx, &change, s.now()); {
		case wrote:
		case answer.Err != nil:
			return answer.Err
		case answer.Busy:
			return fmt.Errorf("an open transaction has written record %s", last.To.ID)
		default:
			// Also if the change was applied before: its own transaction committed
			// then, and the writes of this one would be a second effect.
			return fmt.Errorf("record %s: %w", last.To.ID, store.ErrSuperseded)
		}
	}
	for _, r := range tx.rows {
		s.commitRow(r)
	}
	maps.Copy(s.values, tx.values)
	return nil
}

// drop drops the uncommitted writes of tx.
func (s *Store) drop(tx *Tx) {
	for id := range tx.rows {
		delete(s.writing, id)
	}
	clear(tx.rows)
	clear(tx.values)
}

// end releases everything that tx holds. Uncommitted writes are lost.
func (s *Store) end(tx *Tx) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx.done = true
	s.drop(tx)
	if s.holding[tx.id] == tx {
		delete(s.holding, tx.id)
	}
}
