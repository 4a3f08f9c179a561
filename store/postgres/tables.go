package postgres

import (
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/sqlname"
)

// tables has the statements with the schema and the prefix of the tables, so that a handler that
// sets a search_path, a tenant's for example, does not change where its record is
// written.
type tables struct {
	schema, prefix string

	name  *strings.Replacer
	texts sync.Map // statements with the names, by the same without them
}

func newTables(schema, prefix string) *tables {
	t := &tables{schema: schema, prefix: prefix}
	var names []string
	for _, name := range []string{"semel_records", "semel_notes", "semel_record_view", "semel_salt", "semel_outbox_parked", "semel_outbox_notes", "semel_outbox"} {
		names = append(names, name, pgx.Identifier{schema}.Sanitize()+"."+sqlname.Rename(name, prefix))
	}
	t.name = strings.NewReplacer(names...)
	return t
}

// beside returns the name of a table in the schema of the records, for a statement.
func (t *tables) beside(table string) string { return pgx.Identifier{t.schema, table}.Sanitize() }

// in inserts the schema and the prefix into a statement.
func (t *tables) in(text string) string {
	if named, ok := t.texts.Load(text); ok {
		return named.(string)
	}
	named := t.name.Replace(text)
	t.texts.Store(text, named)
	return named
}
