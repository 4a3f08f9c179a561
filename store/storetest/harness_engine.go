package storetest

import (
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// engineHarness is a harness for engines over the store.
type engineHarness struct {
	*harness

	// connect returns the store for processes, with the faults that decide returns.
	// Nil is no faults.
	connect func(decide func(Call) Fault) processStore
	txModes txModes // nil: the store has no transactions
}

// processStore is the store as processes use it.
type processStore struct {
	*Faulty // nil: the store has no faults

	newEngine func(o semel.Options) (semel.Runner, error)
}

func newEngineHarness(r *harness) *engineHarness {
	return &engineHarness{harness: r, connect: func(decide func(Call) Fault) processStore {
		var f *Faulty
		s := r.store
		if decide != nil {
			f = NewFaulty(s, decide)
			s = f
		}
		return processStore{f, func(o semel.Options) (semel.Runner, error) { return semel.NewRunner(s, o) }}
	}}
}

// newTxEngineHarness returns a harness for engines that use the store's
// transactions.
func newTxEngineHarness[Tx any](r *txHarness[Tx]) *engineHarness {
	return &engineHarness{harness: r.harness, txModes: r, connect: func(decide func(Call) Fault) processStore {
		var f *Faulty
		s := r.tx
		if decide != nil {
			tx := NewFaultyTx(r.tx, decide)
			f, s = tx.Faulty, r.failing(tx)
		}
		return processStore{f, func(o semel.Options) (semel.Runner, error) { return semel.New(s, o) }}
	}}
}

// lease is long enough for a handler, and short enough for a check that waits for
// its end.
func (r *engineHarness) lease() time.Duration {
	if r.advance == nil {
		return r.shortLease
	}
	return 30 * time.Second
}

// expireLease waits until the lease of an InProgress record has expired.
func (r *engineHarness) expireLease(id store.ID) {
	r.Helper()
	if r.advance != nil {
		r.advance(2 * r.lease())
		return
	}
	for {
		if rec := r.read(id); rec == nil || rec.State != store.InProgress || rec.Due <= 0 {
			return
		}
		if pause(r.ctx) != nil {
			r.Fatal("the lease is never over")
		}
	}
}
