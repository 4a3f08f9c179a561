package mysql

import (
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
	}, outboxsql.SQLPool(s.lanes), func(tx *sql.Tx) outboxsql.Conn { return outboxsql.SQL(tx) })
}
