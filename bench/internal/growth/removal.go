package growth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/payment"
	"github.com/semelgo/semel/bench/internal/usage"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

const (
	removalRow = "removal of 10⁶ old records: dropping their partition against purging them"
	removalLog = "removal of 10⁶ old records: written to the log by dropping their partition"
)

// removal compares purging and vacuuming old records with dropping a partition of
// as many.
func removal(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
	if err := room(ctx, l, 2*large); err != nil {
		return nil, err
	}
	d, err := newDatabase(ctx, l, "removal")
	if err != nil {
		return nil, err
	}
	parts, err := postgres.NewPartitions(d.store, postgres.PartitionOptions{})
	if err != nil {
		return nil, err
	}
	if err := d.fillOld(ctx, parts); err != nil {
		return nil, fmt.Errorf("fill old partitions: %w", err)
	}
	l.Logf("%d old records in a partition, and %d without", large, large)
	dropped, err := d.measured(ctx, func() error { return drop(ctx, parts) })
	if err != nil {
		return nil, err
	}
	purged, err := d.measured(ctx, func() error { return d.purge(ctx) })
	if err != nil {
		return nil, err
	}
	vacuumed, err := d.measured(ctx, func() error { return d.exec(ctx, "vacuum "+firstTable) })
	if err != nil {
		return nil, err
	}
	said := fmt.Sprintf("dropped in %s; purged in %s; vacuumed afterwards, so that there is place again, in %s. Without the VACUUM: %.1f times as long",
		dropped, purged, vacuumed, purged.took.Seconds()/dropped.took.Seconds())
	return []goal.Finding{
		{Row: removalRow, Value: (purged.took + vacuumed.took).Seconds() / dropped.took.Seconds(), Detail: said},
		{Row: removalLog, Value: float64(dropped.log), Detail: said},
	}, nil
}

// firstTable is the partition of records without a time, which is purged.
const firstTable = "semel_records_first"

// fillOld divides the table as if that had been done long ago, so that one
// partition is old enough to be dropped. It fills that partition, and the partition
// of records without a time, with old records.
func (d *database) fillOld(ctx context.Context, parts *postgres.Partitions) error {
	const day = 24 * time.Hour
	insert, err := d.like(ctx, payment.Do(d.engine), "%s", "(%s || substr(md5(i::text), 13))::uuid", "now() - interval '1 day' + i * interval '1 millisecond'")
	if err != nil {
		return err
	}
	if err := parts.Divide(ctx); err != nil {
		return err
	}
	all, err := parts.List(ctx)
	if err != nil {
		return err
	}
	divided, past, recent := store.FirstID(all[0].To), time.Now().Add(-10*day).UTC(), time.Now().Add(-5*day).UTC()
	old := "semel_records_p" + past.Format("20060102t150405")
	attach := func(name, from string, to store.ID) []string {
		return []string{
			fmt.Sprintf("create table if not exists %s (like semel_records including all)", name),
			fmt.Sprintf("alter table semel_records attach partition %s for values from (%s) to ('%s')", name, from, to),
		}
	}
	statements := []string{"alter table semel_records detach partition " + firstTable}
	statements = append(statements, attach(firstTable, "minvalue", store.FirstID(past))...)
	statements = append(statements, attach(old, "'"+store.FirstID(past).String()+"'", store.FirstID(recent))...)
	statements = append(statements, attach("semel_records_p"+recent.Format("20060102t150405"), "'"+store.FirstID(recent).String()+"'", divided)...)
	if err := d.exec(ctx, statements...); err != nil {
		return err
	}
	for name, digits := range map[string]string{
		firstTable: "'00000000' || substr(md5('0' || i::text), 1, 4)",
		old:        "'" + store.FirstID(past.Add(day)).String()[:12] + "'",
	} {
		if err := d.insert(ctx, fmt.Sprintf(insert, name, digits), large); err != nil {
			return err
		}
	}
	return d.settle(ctx)
}

// actionCost is the cost of an action.
type actionCost struct {
	took    time.Duration
	log     int64
	foreign float64
}

func (e actionCost) String() string {
	s := fmt.Sprintf("%.2f s with %.1f MB of log", e.took.Seconds(), float64(e.log)/1e6)
	if e.foreign > usage.Foreign {
		s += fmt.Sprintf(" (noisy: others used %.0f %% of the machine)", 100*e.foreign)
	}
	return s
}

// measured runs an action after a checkpoint.
func (d *database) measured(ctx context.Context, do func() error) (actionCost, error) {
	if err := d.exec(ctx, "checkpoint"); err != nil {
		return actionCost{}, err
	}
	var at string
	if err := d.pool.QueryRow(ctx, "select pg_current_wal_lsn()::text").Scan(&at); err != nil {
		return actionCost{}, fmt.Errorf("read the end of the log: %w", err)
	}
	before, err := usage.Begin(d.server.Usage)
	if err != nil {
		return actionCost{}, err
	}
	if err := do(); err != nil {
		return actionCost{}, err
	}
	span, err := before.End()
	if err != nil {
		return actionCost{}, err
	}
	e := actionCost{took: span.Elapsed, foreign: span.Foreign}
	err = d.pool.QueryRow(ctx, "select pg_wal_lsn_diff(pg_current_wal_lsn(), $1::text::pg_lsn)::bigint", at).Scan(&e.log)
	return e, err
}

func drop(ctx context.Context, parts *postgres.Partitions) error {
	dropped, err := parts.Drop(ctx)
	if err == nil && len(dropped) != 1 {
		err = fmt.Errorf("dropped %d partitions", len(dropped))
	}
	return err
}

// purge removes records in batches, as a sweeper does.
func (d *database) purge(ctx context.Context) error {
	for gone := 0; gone < large; {
		n, err := d.store.Purge(ctx, store.MaxLimit)
		if err != nil {
			return err
		}
		if gone += n; n == 0 {
			return errors.New("nothing was purged")
		}
	}
	return nil
}
