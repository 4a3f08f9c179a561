package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semelgo/semel/store"
)

// rollBack rolls the open transaction back because of cause. SQLite may have done
// so already, because it could not write the last change; then nothing was
// committed either.
func (t *transaction) rollBack(ctx context.Context, cause error) (store.Verdict, error) {
	if err := t.undo(ctx); err == nil {
		return store.NotCommitted, cause
	}
	return t.find(ctx, true), cause
}

// gone ends a transaction whose savepoint could not be released: the transaction
// has ended, or a statement of the handler is still open.
func (t *transaction) gone(ctx context.Context, closing error, last *store.Change, failed error) (store.Verdict, error) {
	err := t.undo(ctx)
	if err == nil && IsBusy(closing) {
		return store.NotCommitted, fmt.Errorf("end the handler's part: %w", closing)
	}
	verdict := t.find(ctx, errors.Is(err, sql.ErrTxDone) || failed != nil)
	switch {
	case failed == nil:
		return verdict, fmt.Errorf("%w: %w", ErrEnded, closing)
	case last == nil && verdict == store.NotCommitted:
		return verdict, failed
	default:
		return verdict, fmt.Errorf("%w: %w", ErrEnded, failed)
	}
}

// find finds out how a transaction ended. If its mark exists, the handler has
// committed it, because the last change removes the mark. Otherwise it was rolled
// back, but later writes of the handler were committed one by one. A driver that
// counts commits shows whether there were any; with other drivers, the store
// assumes none if the handler had stopped.
func (t *transaction) find(ctx context.Context, stopped bool) store.Verdict {
	none, known := t.commits.none(t.conn)
	result, err := t.conn.ExecContext(context.WithoutCancel(ctx), t.store.named(sqlUnmark), t.mark)
	if err != nil {
		return store.Unknown
	}
	found, err := result.RowsAffected()
	switch {
	case err != nil:
		return store.Unknown
	case found > 0:
		return store.Committed
	case known && none, !known && stopped:
		return store.NotCommitted
	default:
		return store.Unknown
	}
}

// counter is a driver's connection that has SQLite's data version, which changes
// with every commit, including the connection's own.
type counter interface {
	FileControlDataVersion(database string) (uint32, error)
}

// commits is a number of commits, if the driver counts them.
type commits struct {
	count uint32
	known bool
}

func countCommits(conn *sql.Conn) commits {
	var c commits
	err := conn.Raw(func(driverConn any) (err error) {
		counts, known := driverConn.(counter)
		if known {
			c.known = true
			c.count, err = counts.FileControlDataVersion("main")
		}
		return err
	})
	c.known = c.known && err == nil
	return c
}

// none reports whether nothing was committed since, if that is known.
func (c commits) none(conn *sql.Conn) (none, known bool) {
	since := countCommits(conn)
	return since.count == c.count, c.known && since.known
}
