package postgres

import (
	"context"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/store"
)

// Partition is one of those that the table of records is divided into.
type Partition struct {
	// Name is the name of its table, in the schema of semel_records.
	Name string
	// From and To are the first time it holds and the first it does not, in UTC.
	// The From of the first partition is zero: it has all that is before its To,
	// and all keys without a time.
	From, To time.Time
	// Sealed says that it takes no records any more: a drop of it is under way.
	Sealed bool
	// Detached says that it is not reached through semel_records any more.
	Detached bool

	pending bool // its detaching is under way, or was broken off
}

// First reports whether p has what has no time, so that it is never dropped.
func (p Partition) First() bool { return p.From.IsZero() }

// Names of what belongs to partitions. The constraints are told apart by them.
const (
	firstPartition = "semel_records_first"
	sealConstraint = "semel_sealed"
	firstBound     = "semel_first_bound"
)

// List returns the partitions that there are, in the order of their times: those
// that are there, and those whose drop was broken off. It fails with ErrNotDivided
// when the table is not partitioned.
func (p *Partitions) List(ctx context.Context) ([]Partition, error) {
	on, err := p.store.tables(ctx)
	if err != nil {
		return nil, p.store.fault("list partitions", err)
	}
	conn, err := p.store.acquire(ctx)
	if err != nil {
		return nil, p.store.fault("list partitions", err)
	}
	defer conn.Release()
	all, err := list(ctx, conn, on)
	if err != nil {
		return nil, p.store.fault("list partitions", err)
	}
	return all, nil
}

// querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// A partition that is detached has no bounds any more; it is known by its seal. Nor
// has one that was dropped while this was read: the server finds the row as it was,
// and then nothing to tell the bounds of.
const sqlPartitions = `SELECT c.relname::text, coalesce(pg_get_expr(c.relpartbound, c.oid), ''),
EXISTS (SELECT FROM pg_constraint s WHERE s.conrelid = c.oid AND s.conname = '` + sealConstraint + `'),
NOT c.relispartition, coalesce(i.inhdetachpending, false)
FROM pg_class r JOIN pg_class c ON c.relnamespace = r.relnamespace AND c.relkind = 'r'
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = r.oid
WHERE r.oid = $1::text::regclass AND (i.inhrelid IS NOT NULL
OR c.relname LIKE 'semel\_records\_p%' AND NOT c.relispartition
AND EXISTS (SELECT FROM pg_constraint s WHERE s.conrelid = c.oid AND s.conname = '` + sealConstraint + `'))
ORDER BY i.inhrelid IS NULL, pg_get_expr(c.relpartbound, c.oid), c.relname`

func list(ctx context.Context, in querier, on *tables) ([]Partition, error) {
	if divided, err := isDivided(ctx, in, on); err != nil || !divided {
		return nil, orNotDivided(err)
	}
	rows, err := in.Query(ctx, sqlPartitions, on.in("semel_records"))
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
			return p, p.bornIn()
		case bounds == "":
			return Partition{}, nil
		}
		return p, p.within(bounds)
	})
	all = slices.DeleteFunc(all, func(p Partition) bool { return p.Name == "" })
	return inOrderOfTime(all), err
}

func orNotDivided(err error) error {
	if err != nil {
		return err
	}
	return ErrNotDivided
}

func isDivided(ctx context.Context, in querier, on *tables) (divided bool, err error) {
	err = in.QueryRow(ctx, `SELECT relkind = 'p' FROM pg_class WHERE oid = $1::text::regclass`, on.in("semel_records")).Scan(&divided)
	return divided, err
}

// bound finds the IDs in what the server says of a partition's bounds.
var bound = regexp.MustCompile(`^FOR VALUES FROM \((MINVALUE|'[0-9a-f-]{36}')\) TO \('([0-9a-f-]{36})'\)$`)

// within reads the times of the bounds.
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

// timeOf is the time of an ID in a partition's bound. One without a time is that
// of a bound that is not ours either, and comes before all times.
func timeOf(text string) time.Time {
	var id store.ID
	digits, _ := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	copy(id[:], digits)
	at, _ := id.Time()
	return at
}

// nameTime is how a partition's name tells its From.
const nameTime = "20060102t150405"

func partitionName(from time.Time) string { return "semel_records_p" + from.UTC().Format(nameTime) }

// bornIn reads the time of a partition that is detached out of its name.
func (p *Partition) bornIn() (err error) {
	p.From, err = time.Parse(nameTime, strings.TrimPrefix(p.Name, "semel_records_p"))
	p.To = p.From
	return err
}
