package mysql

import (
	"context"
	"database/sql"
	"strings"

	"github.com/semelgo/semel/internal/outboxsql"
	"github.com/semelgo/semel/internal/sqlname"
	"github.com/semelgo/semel/store"
)

// Outbox returns the table of events, for package outbox.
func (s *Store) Outbox() store.Outbox[*sql.Tx] {
	return outboxsql.New(outboxsql.Dialect{
		Now: now, Age: `(` + now + ` - created)`, ID: `?`, TextID: `o.id`,
		OrNothing: ` ON DUPLICATE KEY UPDATE parking = semel_outbox_parked.parking`,
		Name:      func(text string) string { return strings.ReplaceAll(text, sqlname.DefaultPrefix, s.prefix) },
		Fault:     fault,
	}, outboxPool{outboxsql.SQLPool(s.lanes), outboxsql.SQLPool(s.db)}, func(tx *sql.Tx) outboxsql.Conn { return outboxsql.SQL(tx) })
}

// outboxPool reads in the store's own sessions. These do not wait for locks, but an operator's change must
// wait until a relay that has the row commits, so it is made in a session of the program.
type outboxPool struct {
	outboxsql.Pool

	changes outboxsql.Pool
}

// Tx runs do in a transaction.
func (p outboxPool) Tx(ctx context.Context, do func(c outboxsql.Conn) error) error {
	return p.changes.Tx(ctx, do)
}
