package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semelgo/semel/store"
)

// SwapTx is Swap within tx, a transaction of the *sql.DB that New was given, at any
// isolation level. It works change by change.
func (s *Store) SwapTx(ctx context.Context, tx *sql.Tx, changes []store.Change) ([]store.SwapResult, error) {
	if tx == nil {
		return nil, errors.New("swap: the transaction is nil")
	}
	f, results, valid, err := s.checked(ctx, changes)
	if err != nil {
		return nil, err
	}
	ctx = withKind(context.WithoutCancel(ctx), answering)
	for _, i := range valid {
		if results[i], err = f.swapTx(ctx, s.in(tx), &changes[i]); err != nil {
			return nil, fault("swap", err)
		}
	}
	return results, nil
}

func (f *dialect) swapTx(ctx context.Context, tx runner, c *store.Change) (store.SwapResult, error) {
	text, args := statement(c)
	if (c.If == store.Token{}) {
		text += orNothing
	}
	result, err := f.one(ctx, tx, step{text: text, args: args, wait: noWait})
	switch {
	case isBusy(err) && !isConflict(err):
		return store.SwapResult{Busy: true}, nil
	case isRefusal(err):
		return store.SwapResult{Err: fmt.Errorf("swap record %s: %w", c.To.ID, err)}, nil
	case err != nil:
		return store.SwapResult{}, err
	}
	n, err := result.RowsAffected()
	switch {
	case err != nil:
		return store.SwapResult{}, err
	case n == 1:
		return store.SwapResult{Token: c.To.Token}, nil
	}
	// Above read committed, a plain read would show an old record.
	rows, err := tx.QueryContext(ctx, sqlGet+`(?) FOR UPDATE NOWAIT`, c.To.ID[:])
	var records []store.Record
	if err == nil {
		records, err = readRecords(rows)
	}
	switch {
	case isBusy(err) && !isConflict(err):
		return store.SwapResult{Busy: true}, nil
	case err != nil:
		return store.SwapResult{}, err
	case len(records) == 0:
		return store.SwapResult{}, nil
	}
	return resultOf(c, &records[0]), nil
}
