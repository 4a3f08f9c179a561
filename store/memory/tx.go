package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/semelgo/semel/store"
)

// ErrTxDone refuses the use of a transaction that has ended.
var ErrTxDone = errors.New("semel/store/memory: transaction has ended")

// Tx is an open transaction with a handler's own writes, so that tests see them
// commit and roll back with the record. It is valid until the function that
// received it returns, and may be used concurrently.
type Tx struct {
	store *Store

	// Guarded by store.mu.
	done    bool
	values  map[string][]byte
	rows    map[store.ID]*row
	creates int      // number of created rows
	held    store.ID // with hold: the ID of the right
	holds   bool
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
	if value, own := cloneValue(tx.values, key); own {
		return value, true
	}
	return cloneValue(tx.store.values, key)
}

func cloneValue(values map[string][]byte, key string) ([]byte, bool) {
	value, found := values[key]
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
