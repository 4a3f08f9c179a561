package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// tables has the statements with the schema of the tables, so that a handler that
// sets a search_path, a tenant's for example, does not change where its record is
// written.
type tables struct {
	schema string
	name   *strings.Replacer

	stands, standsOff                                                                                                   string // with sequential scans restored, and without
	look, getMany, same, others, scan, scanRare, scanDue, scanWaits, scanLeases, counts, purge, notes, dequeue, claimed string

	one    [kinds]string   // change one record, or none
	lone   string          // create one record, or none, with a limit for the wait
	last   [kinds]string   // change one record, or raise
	finish string          // one[move] for most ends of attempts
	many   [kinds]bulkText // change many records
	// alike changes many records of one groupKey; there is none for heartbeats.
	alike [kinds]bulkText
	queue bulkText // alike[create] with inputs
	ends  string   // create one, or raise, and raise in any other transaction
	ended string   // ends, for a change that isFinalInsert

	first, firstHeld       string // create one, or raise, and raise without the right
	outright, outrightHeld string // the same for a change that isFinalInsert
}

// newTables makes the statements. If all values are sent as texts, times are read
// as numbers, because the text of a time depends on the session's DateStyle.
func newTables(schema string, asTexts bool) *tables {
	quoted := pgx.Identifier{schema}.Sanitize()
	var names []string
	for _, name := range []string{"semel_records", "semel_notes", "semel_record_view", "semel_salt"} {
		names = append(names, name, quoted+"."+name)
	}
	if asTexts {
		names = append(names, instantColumns, instantNumbers)
	}
	t := &tables{schema: schema, name: strings.NewReplacer(names...)}
	for _, s := range []struct {
		to   *string
		text string
	}{
		{&t.stands, fmt.Sprintf(sqlStands, "on")},
		{&t.standsOff, fmt.Sprintf(sqlStands, "off")},
		{&t.look, sqlLook},
		{&t.getMany, sqlGetMany},
		{&t.same, sqlSame},
		{&t.others, sqlOthers},
		{&t.scan, sqlScan},
		{&t.scanRare, sqlScanRare},
		{&t.scanDue, sqlScanDue},
		{&t.scanWaits, sqlScanWaits},
		{&t.scanLeases, sqlScanLeases},
		{&t.counts, sqlCounts},
		{&t.purge, sqlPurge},
		{&t.notes, sqlNotes},
		{&t.dequeue, sqlDequeue},
		{&t.claimed, sqlClaimed},
		{&t.one[create], sqlCreate + orNothing},
		{&t.lone, sqlCreateWithin + orNothing},
		{&t.one[move], sqlMove},
		{&t.one[beat], sqlBeat},
		{&t.finish, sqlFinish},
		{&t.last[create], sqlLastCreate},
		{&t.last[move], sqlLastMove},
		{&t.last[beat], sqlLastBeat},
		{&t.ends, sqlEndCreate},
		{&t.ended, sqlEndOutright},
		{&t.many[create].text, sqlCreateMany},
		{&t.many[create].applied, sqlCreateMany + telling},
		{&t.many[move].text, sqlMoveMany},
		{&t.many[move].applied, sqlMoveMany + telling},
		{&t.many[beat].text, sqlBeatMany},
		{&t.many[beat].applied, sqlBeatMany + telling},
		{&t.alike[create].text, sqlCreateAlike + orNothing},
		{&t.alike[create].applied, sqlCreateAlike + orNothing + telling},
		{&t.queue.text, sqlQueueAlike + orNothing},
		{&t.queue.applied, sqlQueueAlike + orNothing + telling},
		{&t.alike[move].text, sqlMoveAlike},
		{&t.alike[move].applied, sqlMoveAlike + telling},
	} {
		*s.to = t.in(s.text)
	}
	return t
}

// in inserts the schema into a statement.
func (t *tables) in(text string) string { return t.name.Replace(text) }

// noted returns the statement that changes one record and writes a note, or does
// neither. The note's parameters follow those of the change.
func (t *tables) noted(k kind, args int) string {
	return raising + t.one[k] + t.in(fmt.Sprintf(noting,
		args+1, args+2, args+3, args+4, args+5, args+6, args+7, args+8, args+9))
}

// tables finds the tables by the search_path of the pool's connections, once.
func (s *Store) tables(ctx context.Context) (*tables, error) {
	if t := s.found.Load(); t != nil {
		return t, nil
	}
	const read = `SELECT n.nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass('semel_records')`
	var schema string
	switch err := s.queryRow(ctx, []any{&schema}, read); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, fmt.Errorf("find the tables: %w", ErrNoSchema)
	case err != nil:
		return nil, fmt.Errorf("find the tables: %w", err)
	}
	t := newTables(schema, s.asTexts)
	t.first, t.firstHeld = t.in(s.texts.first), t.in(s.texts.firstHeld)
	t.outright, t.outrightHeld = t.in(s.texts.outright), t.in(s.texts.outrightHeld)
	s.found.Store(t)
	return t, nil
}

// exists returns the statement that checks whether a record exists, in a
// transaction that begins with sequential scans, or without.
func (t *tables) exists(noScans bool) string {
	if noScans {
		return t.standsOff
	}
	return t.stands
}
