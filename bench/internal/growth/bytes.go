package growth

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/payment"
)

const (
	bytesRow       = "stored bytes: heap and indexes, of the bytes of operation, scope, key and payload"
	bytesAtOnceRow = "stored bytes: the same when nothing was vacuumed"
)

// storedBytes makes many calls and measures the growth of the table.
func storedBytes(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
	d, err := newDatabase(ctx, l, "bytes")
	if err != nil {
		return nil, err
	}
	calls := 100_000
	if l.Quick {
		calls = 20_000
	}
	atOnce, err := d.grown(ctx, calls, false)
	if err != nil {
		return nil, err
	}
	vacuumed, err := d.grown(ctx, calls, true)
	if err != nil {
		return nil, err
	}
	return []goal.Finding{
		{Row: bytesRow, Value: vacuumed.each() / given, Detail: fmt.Sprintf(
			"%d Do by %d callers, vacuumed each time the table had grown by a fifth, which is when autovacuum's defaults would: %s; "+
				"%.0f bytes were given: operation %d, scope %d, key 36, payload %d",
			calls, callers, vacuumed, given, len(timed.Name()), len(payment.Scope(0)), payment.Size)},
		{Row: bytesAtOnceRow, Value: atOnce.each() / given, Detail: fmt.Sprintf("%d Do: %s", calls, atOnce)},
	}, nil
}

// grown returns the size of an initially empty table after n calls.
func (d *database) grown(ctx context.Context, calls int, vacuum bool) (size, error) {
	if err := d.exec(ctx, "truncate semel_records"); err != nil {
		return size{}, err
	}
	for made := 0; made < calls; {
		more := calls - made
		if vacuum {
			more = min(more, max(made/5, calls/20))
		}
		if err := d.call(ctx, more); err != nil {
			return size{}, fmt.Errorf("make calls: %w", err)
		}
		made += more
		if !vacuum {
			continue
		}
		if err := d.exec(ctx, "vacuum semel_records"); err != nil {
			return size{}, err
		}
	}
	var s size
	err := d.pool.QueryRow(ctx, "select (select count(*) from semel_records), pg_table_size('semel_records'), pg_indexes_size('semel_records')").Scan(&s.records, &s.heap, &s.indexes)
	return s, err
}

// given is the number of bytes that the caller of one call passes.
var given = float64(len(timed.Name()) + len(payment.Scope(0)) + 36 + payment.Size) //nolint:gochecknoglobals // it never changes

// size returns the size of the table.
type size struct {
	records       int
	heap, indexes int64
}

func (s size) each() float64 { return float64(s.heap+s.indexes) / float64(s.records) }

func (s size) String() string {
	return fmt.Sprintf("%.0f bytes a record, heap %.0f and indexes %.0f", s.each(), float64(s.heap)/float64(s.records), float64(s.indexes)/float64(s.records))
}

// call makes n calls from all callers together.
func (d *database) call(ctx context.Context, calls int) error {
	do := payment.Do(d.engine)
	var next atomic.Int64
	_, err := contest.Once(ctx, callers, func(ctx context.Context, c *contest.Caller) (struct{}, error) {
		for next.Add(1) <= int64(calls) {
			if err := do(ctx, c); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	return err
}
