package storetest

import (
	"context"

	"github.com/semelgo/semel/store"
)

// Outbox implements store.OutboxStore, if the store does. The methods of a Call are
// "Lanes", "Head", "Counts", "ParkedAggregates", "Redrive", "Notes", "Append", "Remove",
// "Failed", "Park", "SetAside" and "Unpark". What a transaction changes is also part of its "Atomic".
func (f *FaultyTx[Tx]) Outbox() store.Outbox[Tx] {
	s, ok := f.tx.(store.OutboxStore[Tx])
	if !ok {
		return nil
	}
	inner := s.Outbox()
	return faultyOutbox[Tx]{faultyOutboxReader{f.Faulty, inner}, inner}
}

type faultyOutbox[Tx any] struct {
	faultyOutboxReader

	table store.Outbox[Tx]
}

// In implements store.Outbox.
func (o faultyOutbox[Tx]) In(tx Tx) store.OutboxTx { return faultyOutboxTx{o.f, o.table.In(tx)} }

type faultyOutboxReader struct {
	f     *Faulty
	inner store.OutboxReader
}

// Lanes implements store.OutboxReader.
func (o faultyOutboxReader) Lanes(ctx context.Context) ([]store.OutboxLane, error) {
	return inject(ctx, o.f, Call{Method: "Lanes"}, func(Fault) ([]store.OutboxLane, error) { return o.inner.Lanes(ctx) })
}

// Head implements store.OutboxReader.
func (o faultyOutboxReader) Head(ctx context.Context, q store.OutboxHead) ([]store.OutboxEvent, error) {
	return inject(ctx, o.f, Call{Method: "Head"}, func(Fault) ([]store.OutboxEvent, error) { return o.inner.Head(ctx, q) })
}

// Counts implements store.OutboxReader.
func (o faultyOutboxReader) Counts(ctx context.Context) (store.OutboxCounts, error) {
	return inject(ctx, o.f, Call{Method: "Counts"}, func(Fault) (store.OutboxCounts, error) { return o.inner.Counts(ctx) })
}

// ParkedAggregates implements store.OutboxReader.
func (o faultyOutboxReader) ParkedAggregates(ctx context.Context, limit int) ([]store.ParkedAggregate, error) {
	return inject(ctx, o.f, Call{Method: "ParkedAggregates"}, func(Fault) ([]store.ParkedAggregate, error) {
		return o.inner.ParkedAggregates(ctx, limit)
	})
}

// Redrive implements store.OutboxReader.
func (o faultyOutboxReader) Redrive(ctx context.Context, r store.OutboxRedrive) (bool, error) {
	return inject(ctx, o.f, Call{Method: "Redrive"}, func(Fault) (bool, error) { return o.inner.Redrive(ctx, r) })
}

// Notes implements store.OutboxReader.
func (o faultyOutboxReader) Notes(ctx context.Context, limit int) ([]store.OutboxNote, error) {
	return inject(ctx, o.f, Call{Method: "Notes"}, func(Fault) ([]store.OutboxNote, error) { return o.inner.Notes(ctx, limit) })
}

type faultyOutboxTx struct {
	f     *Faulty
	inner store.OutboxTx
}

func (o faultyOutboxTx) call(ctx context.Context, method string, call func() error) error {
	_, err := inject(ctx, o.f, Call{Method: method}, func(Fault) (struct{}, error) { return struct{}{}, call() })
	return err
}

// Append implements store.OutboxTx.
func (o faultyOutboxTx) Append(ctx context.Context, events []store.OutboxEvent) error {
	return o.call(ctx, "Append", func() error { return o.inner.Append(ctx, events) })
}

// Remove implements store.OutboxTx.
func (o faultyOutboxTx) Remove(ctx context.Context, seqs []int64) error {
	return o.call(ctx, "Remove", func() error { return o.inner.Remove(ctx, seqs) })
}

// Failed implements store.OutboxTx.
func (o faultyOutboxTx) Failed(ctx context.Context, seq int64, failures int) error {
	return o.call(ctx, "Failed", func() error { return o.inner.Failed(ctx, seq, failures) })
}

// Park implements store.OutboxTx.
func (o faultyOutboxTx) Park(ctx context.Context, p store.ParkedAggregate) error {
	return o.call(ctx, "Park", func() error { return o.inner.Park(ctx, p) })
}

// SetAside implements store.OutboxTx.
func (o faultyOutboxTx) SetAside(ctx context.Context, seqs []int64) error {
	return o.call(ctx, "SetAside", func() error { return o.inner.SetAside(ctx, seqs) })
}

// Unpark implements store.OutboxTx.
func (o faultyOutboxTx) Unpark(ctx context.Context, lane int) error {
	return o.call(ctx, "Unpark", func() error { return o.inner.Unpark(ctx, lane) })
}
