package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/clock"
)

// Defaults of PartitionOptions.
const (
	DefaultWidth = 24 * time.Hour
	DefaultAhead = 3
	DefaultKeep  = 24 * time.Hour

	// DefaultLockWait is the LockTimeout of PartitionOptions.
	DefaultLockWait = 20 * time.Millisecond
)

// PartitionOptions define how the table of records is partitioned. The zero value
// has good defaults for an engine with its default Retention.
type PartitionOptions struct {
	// Width is the length of a partition: whole seconds, at least a minute. Zero:
	// 24 hours. A change applies to new partitions.
	Width time.Duration
	// Ahead is the number of future partitions. Together they must be longer than
	// the longest Skew and the longest Generation of an operation, and than any
	// time without Run: a key whose time has no partition is refused. Zero: 3.
	Ahead int
	// Keep is how long a partition stays after its end. It must be at least the
	// longest Retention of an operation with a KeyTime, and the longest Generation,
	// because otherwise keys are refused that are not that old. A partition whose
	// last records are kept for the Skew longer is dropped at a later try. Zero: 24
	// hours.
	Keep time.Duration
	// Every is the interval of Run's turns. Zero: a tenth of Width, at most an
	// hour.
	Every time.Duration
	// LockTimeout is how long one try to lock the table or a partition may delay
	// other callers, which are Busy after a tenth of a second. The try is repeated
	// until it succeeds. Zero: 20 milliseconds.
	LockTimeout time.Duration
	// OnError receives errors of Run, for example a *HeldError, and Run continues.
	// Nil: Run ends with the first error that is not a *HeldError.
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

// Partitions partitions the table of a [Store]'s records by the time at the
// beginning of the IDs of keys with a time, so that old records are removed by
// dropping a table. The first partition has all records of keys without a time, and
// all earlier records; it is never dropped, and Purge removes its records.
//
// It needs PostgreSQL 14 or newer, the owner of the table, and connections that are
// sessions: not those of PgBouncer in transaction mode. Any number of processes may
// maintain the same table; they take turns.
type Partitions struct {
	store   *Store
	options PartitionOptions
	turn    time.Duration // how long Run tries to drop before it makes partitions again
	ahead   time.Duration // added to the server's clock, in tests
}

// NewPartitions returns the Partitions of s. It fails if an option is invalid. It
// does not use the database.
func NewPartitions(s *Store, o PartitionOptions) (*Partitions, error) {
	if s == nil {
		return nil, errors.New("semel/postgres: the store is nil")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Partitions{store: s, options: o, turn: o.Width / 2}, nil
}

// ErrNotDivided means that the table of records is not partitioned: call
// [Partitions.Divide] first.
var ErrNotDivided = errors.New("semel/postgres: the table of records is not divided into partitions")

// The advisory locks for changes of partitions. A drop may wait for hours for
// transactions that use the table, and must not block the making of partitions.
const (
	makeLock int64 = 0x7d6b48871c4d7f1d
	dropLock int64 = 0x7d6b48871c4d7f1e
)

// oldestServer is the first version that detaches partitions concurrently.
const oldestServer = 140000

// partitionLock is a session that holds one of the locks.
type partitionLock struct {
	*Partitions

	conn *pgx.Conn
	on   *tables
	now  time.Time // of the server
}

// withLock runs do in a session that holds the lock, and adds to an error what the caller
// was doing. It waits for the lock until ctx ends. A session that was lost no longer
// holds it.
func (p *Partitions) withLock(ctx context.Context, doing string, lock int64, do func(ctx context.Context, k *partitionLock) error) error {
	return p.store.on(ctx, doing, func(conn lease) error { return p.lock(ctx, conn, lock, do) })
}

func (p *Partitions) lock(ctx context.Context, conn lease, lock int64, do func(ctx context.Context, k *partitionLock) error) error {
	const take = `SELECT pg_try_advisory_lock($1::bigint), current_setting('server_version_num')::integer, clock_timestamp()`
	k := &partitionLock{Partitions: p, conn: conn.Conn, on: conn.on}
	var version int
	// It polls, because a session that waits within a statement has a snapshot, and
	// finishing a DETACH waits for all snapshots: the two would block each other for ever.
	for taken := false; !taken; {
		err := conn.QueryRow(ctx, take, lock).Scan(&taken, &version, &k.now)
		if err == nil && !taken {
			err = clock.Sleep(ctx, lockPoll)
		}
		if err != nil {
			return fmt.Errorf("wait for the lock of partition changes: %w", err)
		}
	}
	defer func() {
		free, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.store.commitBound)
		defer cancel()
		if _, err := conn.Exec(free, `SELECT pg_advisory_unlock($1::bigint)`, lock); err != nil {
			_ = conn.Close(free) // this also releases the lock
		}
	}()
	if version < oldestServer {
		return fmt.Errorf("semel/postgres: partitions need PostgreSQL 14 or newer, this is %d", version)
	}
	k.now = k.now.Add(p.ahead)
	return do(ctx, k)
}

const lockPoll = 100 * time.Millisecond

// quickly runs statements in one transaction that waits for locks only for a moment.
func (k *partitionLock) quickly(ctx context.Context, statements ...string) error {
	return k.within(ctx, k.options.LockTimeout, func(ctx context.Context, tx pgx.Tx) error { return execAll(ctx, tx, statements...) })
}

// within runs a transaction that waits for locks only for a moment. It repeats the
// transaction until it has them, or ctx ends.
func (k *partitionLock) within(ctx context.Context, moment time.Duration, do func(ctx context.Context, tx pgx.Tx) error) error {
	for wait := moment; ; wait = min(2*wait, time.Second) {
		err := pgx.BeginTxFunc(ctx, k.conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT `+set([]setting{{"lock_timeout", millis(moment)}})); err != nil {
				return err
			}
			return do(ctx, tx)
		})
		if !isBusy(err) {
			return err
		}
		if ended := clock.Sleep(ctx, wait); ended != nil { // for the callers that waited meanwhile
			return errors.Join(ended, err)
		}
	}
}
