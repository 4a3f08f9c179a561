package sqlite

import (
	"context"
	"database/sql"

	"github.com/semelgo/semel/internal/outboxsql"
	"github.com/semelgo/semel/store"
)

// Outbox returns the table of events, for package outbox.
func (s *Store) Outbox() store.Outbox[*sql.Tx] {
	return outboxsql.New(outboxsql.Dialect{
		Now: now, Age: `(` + now + ` - created)`, ID: `?`, TextID: `o.id`, OrNothing: ` ON CONFLICT DO NOTHING`,
		Name:  s.named,
		Fault: func(doing string, err error) error { return s.fault(context.Background(), doing, err) },
	}, pooled{s}, func(tx *sql.Tx) outboxsql.Conn { return outboxsql.SQL(tx) })
}

// pooled runs statements on connections of the pool. A write waits for its turn in this
// process first, as every other write of the store does.
type pooled struct{ s *Store }

// Tx runs do in a transaction.
func (p pooled) Tx(ctx context.Context, do func(c outboxsql.Conn) error) error {
	w, err := p.s.begin(ctx, verbLock)
	if err != nil {
		return err
	}
	defer w.leave(ctx)
	if err := do(outboxsql.SQL(w.tx)); err != nil {
		return err
	}
	_, err = w.commit(ctx)
	return err
}

// Query runs a query.
func (p pooled) Query(ctx context.Context, each func(scan func(dest ...any) error) error, text string, args ...any) error {
	conn, err := p.s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return outboxsql.SQL(conn).Query(ctx, each, text, args...)
}
