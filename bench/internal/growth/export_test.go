package growth

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/bench/internal/contest"
)

// Small is how many records a table has that is filled with its indexes.
const Small = small

// TimeKey makes a key that begins with the time.
func TimeKey(c *contest.Caller) string { return timeKey(c) }

// Filled fills the table of a new database, and then asks for one more record, as
// a contest does.
func Filled(ctx context.Context, pool *pgxpool.Pool, records int, ordered bool, c *contest.Caller) error {
	d, err := openDatabase(ctx, pool)
	if err != nil {
		return err
	}
	defer d.engine.Close(context.WithoutCancel(ctx))
	t := d.table(records, ordered)
	if err := t.fill(ctx, records); err != nil {
		return err
	}
	return t.do(ctx, c)
}

// Fits says whether so many records fit into what is free of a disk.
func Fits(records int, free int64) error { return fits(records, free) }
