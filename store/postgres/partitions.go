package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Defaults of PartitionOptions.
const (
	DefaultWidth = 24 * time.Hour
	DefaultAhead = 3
	DefaultKeep  = 24 * time.Hour

	// DefaultLockWait is the LockTimeout of PartitionOptions.
	DefaultLockWait = 20 * time.Millisecond
)

// PartitionOptions say how the table of records is divided. The zero value is good
// for an engine with its default Retention.
type PartitionOptions struct {
	// Width is how much time one partition holds: whole seconds, a minute at
	// least. Zero: 24 hours. A change of it is for the partitions made from then
	// on.
	Width time.Duration
	// Ahead is how many partitions there are for the time to come. Together they
	// must be longer than the longest Skew and the longest Generation of an
	// operation, and than Run may stand still: a key for whose time there is no
	// partition is refused. Zero: 3.
	Ahead int
	// Keep is how long after its end a partition stays: not shorter than the
	// longest Retention of an operation with a KeyTime, and than the longest
	// Generation, or keys are refused that are not that old. A partition whose
	// last records are to be kept for the Skew longer goes at a later try. Zero: 24
	// hours.
	Keep time.Duration
	// Every is how often Run looks after the partitions. Zero: a tenth of Width,
	// an hour at most.
	Every time.Duration
	// LockTimeout is how long one try to lock the table, or a partition, may keep
	// others waiting, who are told Busy after a tenth of a second. It is tried again
	// until it succeeds. Zero: 20 milliseconds.
	LockTimeout time.Duration
	// OnError is told what Run could not do, a *HeldError among others, and Run
	// goes on. Nil: Run ends with the first error, except for a *HeldError.
	OnError func(error)
}

func (o *PartitionOptions) check() error {
	for _, f := range []struct {
		name  string
		of    *time.Duration
		first time.Duration
	}{
		{"Width", &o.Width, DefaultWidth},
		{"Keep", &o.Keep, DefaultKeep},
		{"Every", &o.Every, min(time.Hour, cmp.Or(o.Width, DefaultWidth)/10)},
		{"LockTimeout", &o.LockTimeout, DefaultLockWait},
	} {
		if *f.of < 0 {
			return fmt.Errorf("semel/postgres: PartitionOptions.%s is negative: %v", f.name, *f.of)
		}
		*f.of = cmp.Or(*f.of, f.first)
	}
	switch o.Ahead = cmp.Or(o.Ahead, DefaultAhead); {
	case o.Ahead < 1:
		return fmt.Errorf("semel/postgres: PartitionOptions.Ahead is negative: %d", o.Ahead)
	case o.Width < time.Minute || o.Width%time.Second != 0:
		return fmt.Errorf("semel/postgres: PartitionOptions.Width must be whole seconds and a minute at least: %v", o.Width)
	}
	return nil
}

// Partitions divides the table of a [Store]'s records by the time that leads the
// IDs of keys with a time, so that old records leave by dropping a table. The first
// partition has all records whose keys have no time, and what was there before; it
// is never dropped, and Purge is for it.
//
// It needs PostgreSQL 14 or newer, the role that owns the table, and connections
// that are sessions: not those of PgBouncer in transaction mode. Any number of
// processes may look after the same table; they take turns.
type Partitions struct {
	store   *Store
	options PartitionOptions
	turn    time.Duration // how long Run tries to drop before it makes partitions again
	ahead   time.Duration // of the server's clock, in tests
}

// NewPartitions returns what looks after the partitions of s. It fails when an
// option cannot be. Nothing is asked of the database yet.
func NewPartitions(s *Store, o PartitionOptions) (*Partitions, error) {
	if s == nil {
		return nil, errors.New("semel/postgres: the store is nil")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Partitions{store: s, options: o, turn: o.Width / 2}, nil
}

// ErrNotDivided says that the table of records is not partitioned: call
// [Partitions.Divide] first.
var ErrNotDivided = errors.New("semel/postgres: the table of records is not divided into partitions")

// The advisory locks of those who change partitions. Who drops one may have to wait
// for whoever has the table in use, for hours; who makes them does not wait for that.
const (
	makeLock int64 = 0x7d6b48871c4d7f1d
	dropLock int64 = 0x7d6b48871c4d7f1e
)

// oldestServer is the first that detaches partitions while others work.
const oldestServer = 140000

// keeper is a session that has one of the locks of those who change partitions.
type partitionLock struct {
	*Partitions

	conn *pgxpool.Conn
	on   *tables
	now  time.Time // the server's
}

// withLock runs do in a session that has the lock, for which it waits as long as
// ctx lasts. A session that was lost has no lock any more.
func (p *Partitions) withLock(ctx context.Context, lock int64, do func(ctx context.Context, k *partitionLock) error) error {
	on, err := p.store.tables(ctx)
	if err != nil {
		return err
	}
	conn, err := p.store.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := take(ctx, conn, lock); err != nil {
		return fmt.Errorf("wait for the lock of those who change partitions: %w", err)
	}
	defer func() {
		free, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.store.commitBound)
		defer cancel()
		if _, err := conn.Exec(free, `SELECT pg_advisory_unlock($1::bigint)`, lock); err != nil {
			_ = conn.Conn().Close(free) // and the lock goes with it
		}
	}()
	k := &partitionLock{Partitions: p, conn: conn, on: on}
	var version int
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::integer, clock_timestamp()`).Scan(&version, &k.now)
	switch {
	case err != nil:
		return fmt.Errorf("read the server's clock: %w", err)
	case version < oldestServer:
		return fmt.Errorf("semel/postgres: partitions need PostgreSQL 14 or newer, this is %d", version)
	}
	k.now = k.now.Add(p.ahead)
	return do(ctx, k)
}

// take waits for the lock by asking for it again and again. Who waits within a
// statement has a snapshot for all that time, and the finishing of a DETACH waits
// for all snapshots: the two would be in each other's way for ever.
func take(ctx context.Context, conn *pgxpool.Conn, lock int64) error {
	for {
		var taken bool
		err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1::bigint)`, lock).Scan(&taken)
		if err != nil || taken {
			return err
		}
		if err := stay(ctx, lockPoll); err != nil {
			return err
		}
	}
}

const lockPoll = 100 * time.Millisecond

// stay waits, unless ctx ends.
func stay(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// quickly runs statements in one transaction that waits for locks for a moment
// only, again and again until it had them, as long as ctx lasts.
func (k *partitionLock) quickly(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	return k.within(ctx, k.options.LockTimeout, do)
}

// within is quickly, with another moment.
func (k *partitionLock) within(ctx context.Context, moment time.Duration, do func(ctx context.Context, tx pgx.Tx) error) error {
	for wait := moment; ; wait = min(2*wait, time.Second) {
		err := pgx.BeginTxFunc(ctx, k.conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT `+set([]setting{lockTimeout(moment)})); err != nil {
				return err
			}
			return do(ctx, tx)
		})
		if !isBusy(err) {
			return err
		}
		if ended := stay(ctx, wait); ended != nil { // for those who waited for us
			return errors.Join(ended, err)
		}
	}
}
