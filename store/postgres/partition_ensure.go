package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/store"
)

// Ensure creates the missing partitions of the coming time and returns their number. Each
// one follows the last one and ends with a multiple of Width since 1970. Concurrent writes do
// not wait for it. It fails with ErrNotDivided if the table is not partitioned.
func (p *Partitions) Ensure(ctx context.Context) (made int, err error) {
	err = p.withLock(ctx, "make partitions", makeLock, func(ctx context.Context, k *partitionLock) error {
		made, err = k.ensure(ctx)
		return err
	})
	return made, err
}

func (k *partitionLock) ensure(ctx context.Context) (made int, err error) {
	all, err := list(ctx, k.conn, k.on)
	if err != nil {
		return 0, err
	}
	last := lastEnd(all)
	if last.IsZero() { // another tool has partitioned the table without a bound to continue from
		return 0, errors.New("semel/postgres: no partition of the table ends with a time")
	}
	for until := k.now.Add(time.Duration(k.options.Ahead) * k.options.Width); last.Before(until); made++ {
		to := k.slotEnd(last)
		if err := k.attach(ctx, last, to); err != nil {
			return made, err
		}
		last = to
	}
	return made, nil
}

// slotEnd is the first multiple of Width after at.
func (p *Partitions) slotEnd(at time.Time) time.Time {
	width := p.options.Width.Milliseconds()
	return time.UnixMilli((at.UnixMilli()/width + 1) * width).UTC()
}

// attach creates a table and attaches it as a partition. Unlike CREATE TABLE … PARTITION OF,
// these two statements do not block concurrent reads and writes.
func (k *partitionLock) attach(ctx context.Context, from, to time.Time) error {
	table := k.on.beside(k.on.partitionName(from))
	return k.quickly(ctx, fmt.Sprintf(`CREATE TABLE %s (LIKE %s INCLUDING ALL)`, table, k.on.in("semel_records")),
		fmt.Sprintf(`ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)`,
			k.on.in("semel_records"), table, literal(from), literal(to)))
}

// literal returns the first ID of a time as SQL, because CREATE TABLE takes no parameters.
func literal(at time.Time) string { return "'" + store.FirstID(at).String() + "'" }
