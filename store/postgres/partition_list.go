package postgres

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

// Partition is a partition of the table of records.
type Partition struct {
	// Name is the name of its table, in the schema of semel_records.
	Name string
	// From and To are the first time in the partition and the first time after it,
	// in UTC. The From of the first partition is zero: it has all earlier times,
	// and all keys without a time.
	From, To time.Time
	// Sealed means that the partition accepts no records, because it is being
	// dropped.
	Sealed bool
	// Detached means that the partition is no longer reached through semel_records.
	Detached bool

	pending bool // it is being detached, or detaching was interrupted
}

// First reports whether p holds records without a time, so that it is never
// dropped.
func (p Partition) First() bool { return p.From.IsZero() }

// The names of parts of partitions. The constraints are recognised by their names.
const (
	sealConstraint = "semel_sealed"
	firstBound     = "semel_first_bound"
)

// List returns the partitions sorted by time, including those whose drop was
// interrupted. It fails with ErrNotDivided if the table is not partitioned.
func (p *Partitions) List(ctx context.Context) (all []Partition, err error) {
	err = p.store.on(ctx, "list partitions", func(conn lease) (err error) {
		all, err = list(ctx, conn.Conn, conn.on)
		return err
	})
	return all, err
}

// A detached partition has no bounds; its seal identifies it. Nor has one that was
// dropped during this query: the server then finds the row, but not the bounds.
const sqlPartitions = `SELECT c.relname::text, coalesce(pg_get_expr(c.relpartbound, c.oid), ''),
EXISTS (SELECT FROM pg_constraint s WHERE s.conrelid = c.oid AND s.conname = '` + sealConstraint + `'),
NOT c.relispartition, coalesce(i.inhdetachpending, false)
FROM pg_class r JOIN pg_class c ON c.relnamespace = r.relnamespace AND c.relkind = 'r'
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = r.oid
WHERE r.oid = $1::text::regclass AND (i.inhrelid IS NOT NULL
OR starts_with(c.relname::text, $2::text) AND NOT c.relispartition
AND EXISTS (SELECT FROM pg_constraint s WHERE s.conrelid = c.oid AND s.conname = '` + sealConstraint + `'))
ORDER BY i.inhrelid IS NULL, pg_get_expr(c.relpartbound, c.oid), c.relname`

func list(ctx context.Context, in *pgx.Conn, on *tables) ([]Partition, error) {
	if err := isDivided(ctx, in, on); err != nil {
		return nil, err
	}
	rows, err := in.Query(ctx, sqlPartitions, on.in("semel_records"), on.timedPrefix())
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Partition, err error) {
		var bounds string
		if err := row.Scan(&p.Name, &bounds, &p.Sealed, &p.Detached, &p.pending); err != nil {
			return p, fmt.Errorf("read a row: %w", err)
		}
		switch {
		case p.Detached:
			p.From, err = time.Parse(nameTime, strings.TrimPrefix(p.Name, on.timedPrefix()))
			p.To = p.From
			return p, err
		case bounds == "":
			return Partition{}, nil
		}
		return p, p.within(bounds)
	})
	all = slices.DeleteFunc(all, func(p Partition) bool { return p.Name == "" })
	// Partitions with a bound that is not a time come first.
	slices.SortStableFunc(all, func(a, b Partition) int { return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To)) })
	return all, err
}

// lastEnd returns the end of the last partition that is not detached, and zero without one
// that ends with a time.
func lastEnd(all []Partition) (last time.Time) {
	for _, p := range all {
		if !p.Detached && p.To.After(last) {
			last = p.To
		}
	}
	return last
}

// isDivided fails with ErrNotDivided if the table is not partitioned.
func isDivided(ctx context.Context, in *pgx.Conn, on *tables) error {
	var divided bool
	err := in.QueryRow(ctx, `SELECT relkind = 'p' FROM pg_class WHERE oid = $1::text::regclass`, on.in("semel_records")).Scan(&divided)
	if err == nil && !divided {
		return ErrNotDivided
	}
	return err
}

// bound finds the IDs in the server's text of a partition's bounds.
var bound = regexp.MustCompile(`^FOR VALUES FROM \((MINVALUE|'[0-9a-f-]{36}')\) TO \('([0-9a-f-]{36})'\)$`)

// within parses the bounds.
func (p *Partition) within(bounds string) error {
	found := bound.FindStringSubmatch(bounds)
	if found == nil {
		return fmt.Errorf("semel/postgres: partition %s has bounds that are not ours: %s", p.Name, bounds)
	}
	p.To = timeOf(found[2])
	if found[1] != "MINVALUE" {
		p.From = timeOf(strings.Trim(found[1], "'"))
	}
	return nil
}

// timeOf returns the time of an ID in a partition's bounds. An ID without a time
// comes from bounds that Semel has not made, and counts as the earliest time.
func timeOf(text string) time.Time {
	var id pgtype.UUID
	_ = id.Scan(text) // the server has written it
	at, _ := store.ID(id.Bytes).Time()
	return at
}

// nameTime is the form of From in a partition's name.
const nameTime = "20060102t150405"

// timedPrefix begins the names of the partitions that have a From.
func (t *tables) timedPrefix() string { return t.prefix + "records_p" }

func (t *tables) partitionName(from time.Time) string {
	return t.timedPrefix() + from.UTC().Format(nameTime)
}

func (t *tables) firstPartition() string { return t.prefix + "records_first" }
