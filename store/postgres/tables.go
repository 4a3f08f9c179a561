package postgres

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/sqlname"
)

// tables has the statements with the schema and the prefix of the tables, so that a handler that
// sets a search_path, a tenant's for example, does not change where its record is
// written.
type tables struct {
	schema string
	prefix string
	name   *strings.Replacer

	look, getMany, getConfirmed, scan, scanRare, scanPending, scanInProgress, scanDue, scanWaits, scanLeases, counts, purge, notes, dequeue, claimed string

	one  [kinds]string // change one record, or none
	last [kinds]string // change one record, or raise
	many [kinds]string // change many records, and return the IDs of the changed ones
	ends string        // create one, or raise, and raise in any other transaction

	first, firstHeld string // create one, or raise, and raise without the right
}

// newTables makes the statements. If all values are sent as texts, times are read
// as numbers, because the text of a time depends on the session's DateStyle.
func newTables(schema, prefix string, asTexts bool) *tables {
	t := &tables{schema: schema, prefix: prefix}
	var names []string
	for _, name := range []string{"semel_records", "semel_notes", "semel_record_view", "semel_salt", "semel_outbox_parked", "semel_outbox_notes", "semel_outbox"} {
		names = append(names, name, pgx.Identifier{schema}.Sanitize()+"."+sqlname.Rename(name, prefix))
	}
	if asTexts {
		names = append(names, instantColumns, instantNumbers)
	}
	t.name = strings.NewReplacer(names...)
	for _, s := range []struct {
		to   *string
		text string
	}{
		{&t.look, sqlLook},
		{&t.getMany, sqlGetMany},
		{&t.getConfirmed, sqlGetConfirmed},
		{&t.scan, sqlScan},
		{&t.scanRare, sqlScanRare},
		{&t.scanPending, sqlScanPending},
		{&t.scanInProgress, sqlScanInProgress},
		{&t.scanDue, sqlScanDue},
		{&t.scanWaits, sqlScanWaits},
		{&t.scanLeases, sqlScanLeases},
		{&t.counts, sqlCounts},
		{&t.purge, sqlPurge},
		{&t.notes, sqlNotes},
		{&t.dequeue, sqlDequeue},
		{&t.claimed, sqlClaimed},
		{&t.one[create], sqlCreate + orNothing},
		{&t.one[move], sqlMove},
		{&t.one[beat], sqlBeat},
		{&t.last[create], sqlLastCreate},
		{&t.last[move], sqlLastMove},
		{&t.last[beat], sqlLastBeat},
		{&t.ends, sqlEndCreate},
		{&t.many[create], sqlCreateMany + returningID},
		{&t.many[move], sqlMoveMany + returningID},
		{&t.many[beat], sqlBeatMany + returningID},
	} {
		*s.to = t.in(s.text)
	}
	return t
}

// beside returns the name of a table in the schema of the records, for a statement.
func (t *tables) beside(table string) string { return pgx.Identifier{t.schema, table}.Sanitize() }

// in inserts the schema and the prefix into a statement.
func (t *tables) in(text string) string { return t.name.Replace(text) }

// noted returns the statement that changes one record and writes a note, or does
// neither. The note's parameters follow those of the change.
func (t *tables) noted(k kind, args int) string {
	return raising + t.one[k] + t.in(fmt.Sprintf(noting,
		args+1, args+2, args+3, args+4, args+5, args+6, args+7, args+8, args+9))
}
