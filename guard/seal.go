package guard

import (
	"context"
	"fmt"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/store"
)

// Seal makes it impossible that attempts with a smaller number than attempt commit, and
// returns the result if one of them has committed. It waits for a transaction that has
// written the guard row and has not ended, at most 5 seconds. After an error nothing is
// known; sealing again is safe.
func (r *Rows[T, Tx]) Seal(ctx context.Context, scope semel.Scope, key string, attempt uint32) (v T, committed bool, err error) {
	row, err := r.seal(ctx, r.idOf(scope.Bytes(), key), attempt)
	if err != nil || !row.committed {
		return v, false, err
	}
	v, err = decode[T](row)
	return v, err == nil, err
}

// seal returns the current row, which is committed or allows no attempt below n. There
// is no attempt below 1.
func (r *Rows[T, Tx]) seal(ctx context.Context, id string, n uint32) (guardRow, error) {
	n = max(n, 2)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	for {
		err := r.write(ctx, r.db.conn, id, guardRow{attempt: n}, int64(n)-1)
		if err == nil {
			return guardRow{attempt: n}, nil
		}
		if !isUnique(err) {
			return guardRow{}, fmt.Errorf("semel/guard: seal: %w", err)
		}
		row, err := r.read(ctx, id)
		if err != nil || row.committed || row.attempt >= n {
			return row, err
		}
		// Another caller has deleted or sealed the row meanwhile.
	}
}

// Settle settles a record of the operation that is in doubt: it seals all attempts, and
// resolves the record. If the guard row was committed, the record becomes Succeeded with
// the row's result. Otherwise nothing was committed, and then says what follows:
// [semel.Keep] makes the record Failed, and [semel.Release] makes it Pending for another
// attempt. It is for a reconciler that lists the records in doubt:
//
//	records, err := admin.List(ctx, engine, store.Query{State: store.InDoubt, Operation: "transfer"})
//
// actor is noted with the record. It returns the current record. If the record has
// changed meanwhile, the error is [admin.ErrNotInDoubt], and nothing was resolved.
func (r *Rows[T, Tx]) Settle(ctx context.Context, e semel.Runner, record store.Record, then semel.OnError, actor string) (store.Record, error) {
	if record.Operation != r.operation {
		return record, &semel.FieldError{Field: "record", Reason: "is not of the operation " + r.operation}
	}
	resolution := admin.Resolution{ID: record.ID, Attempt: record.Attempt, Actor: actor, Reason: "sealed: no attempt has committed or can commit"}
	switch then {
	case semel.Release:
		resolution.To = store.Pending
	case semel.Keep:
		resolution.To = store.Failed
		resolution.Failure = &semel.Failure{Code: "not_committed", Message: "the operation has failed without an effect"}
	default:
		return record, &semel.FieldError{Field: "then", Reason: "must be Release or Keep"}
	}
	if !isInDoubt(record) {
		return record, admin.ErrNotInDoubt
	}
	row, err := r.seal(ctx, r.idOf(record.Scope, record.Key), record.Attempt+1)
	if err != nil {
		return record, err
	}
	if row.committed {
		resolution.To, resolution.Reason = store.Succeeded, "the guard row was committed"
		if resolution.Result, err = decode[T](row); err != nil {
			return record, err
		}
	}
	return admin.Resolve(ctx, e, resolution)
}

// isInDoubt reports whether a record may be settled: sealing another one would fail an
// attempt that is running.
func isInDoubt(record store.Record) bool { return record.State == store.InDoubt }
