package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/errtype"
)

// HeldError says that a partition is not dropped, because of records that Purge
// would not remove either.
type HeldError struct {
	// Partition is the name of its table.
	Partition string
	// How many of its records are unfinished, and how many others are to be kept
	// for longer.
	Pending, InProgress, InDoubt, Kept int64
}

// Error tells how many records of each kind there are.
func (e *HeldError) Error() string {
	return fmt.Sprintf("semel/postgres: partition %s holds records: %d Pending, %d InProgress, %d InDoubt, %d to be kept for longer",
		e.Partition, e.Pending, e.InProgress, e.InDoubt, e.Kept)
}

// Drop drops the partitions that ended more than Keep ago, by the server's clock,
// and returns them. One that holds a record which is unfinished, or is to be kept
// for longer, stays, with all it has, and its *HeldError is part of the error. So
// does the last one, without an error. It also goes on where a drop was broken off.
//
// What others do meanwhile does not wait for it: the table is neither locked nor
// read, and what is written to other partitions goes on. It waits itself for the
// transactions that have the table in use, for as long as ctx lasts. From the moment when a partition is
// sealed, which is after it was found to hold nothing, a key of its time is
// refused with store.ErrNoPartition.
func (p *Partitions) Drop(ctx context.Context) (dropped []Partition, err error) {
	err = p.withLock(ctx, "drop partitions", dropLock, func(ctx context.Context, k *partitionLock) error {
		dropped, err = k.dropAll(ctx)
		return err
	})
	return dropped, err
}

func (k *partitionLock) dropAll(ctx context.Context) (dropped []Partition, all error) {
	there, err := list(ctx, k.conn, k.on)
	if err != nil {
		return nil, err
	}
	old := k.old(there)
	// While one is being detached, PostgreSQL detaches no other.
	if i := slices.IndexFunc(old, func(p Partition) bool { return p.pending }); i > 0 {
		old[0], old[i] = old[i], old[0]
	}
	for _, p := range old {
		err := k.drop(ctx, p)
		switch _, held := errtype.Find[*HeldError](err); {
		case err == nil:
			dropped = append(dropped, p)
		case held:
			all = errors.Join(all, err)
		default:
			return dropped, errors.Join(all, fmt.Errorf("partition %s: %w", p.Name, err))
		}
	}
	if all != nil {
		return dropped, fmt.Errorf("%w: %w", errOnlyHeld, all)
	}
	return dropped, nil
}

// errOnlyHeld means that the only errors of a drop are that partitions hold records.
var errOnlyHeld = errors.New("semel/postgres: old partitions are still needed")

// drop goes through the steps of a drop from where the last try of it has ended.
func (k *partitionLock) drop(ctx context.Context, p Partition) error {
	table := k.on.beside(p.Name)
	if !p.Detached && !p.pending {
		if err := k.seal(ctx, p, table); err != nil {
			return err
		}
	}
	if !p.Detached {
		if err := k.detach(ctx, p, table); err != nil {
			return fmt.Errorf("detach: %w", err)
		}
	}
	return k.quickly(ctx, `DROP TABLE `+table)
}

// detach waits for other transactions, and runs outside of one. Finishing an
// interrupted detach waits for all snapshots of the database, and holds a lock that
// the making of partitions needs: so each try is short.
func (k *partitionLock) detach(ctx context.Context, p Partition, table string) error {
	text := fmt.Sprintf(`ALTER TABLE %s DETACH PARTITION %s `, k.on.in("semel_records"), table)
	if !p.pending {
		_, err := k.conn.Exec(ctx, text+`CONCURRENTLY`)
		return err
	}
	return k.within(ctx, finalWait, func(ctx context.Context, tx pgx.Tx) error {
		return execAll(ctx, tx, text+`FINALIZE`)
	})
}

// finalWait limits one try to finish a DETACH.
const finalWait = time.Second

// seal blocks writes to a partition that holds nothing, or returns what it holds.
// It waits for transactions that are writing to the partition, so it finds their
// records.
func (k *partitionLock) seal(ctx context.Context, p Partition, table string) error {
	if !p.Sealed {
		if err := k.holds(ctx, p, table); err != nil {
			return err
		}
		if err := k.quickly(ctx, fmt.Sprintf(`ALTER TABLE %s ADD CONSTRAINT %s CHECK (false) NOT VALID`, table, sealConstraint)); err != nil {
			return fmt.Errorf("seal: %w", err)
		}
	}
	held := k.holds(ctx, p, table)
	if _, ok := errtype.Find[*HeldError](held); !ok {
		return held
	}
	if err := k.quickly(ctx, fmt.Sprintf(`ALTER TABLE %s DROP CONSTRAINT %s`, table, sealConstraint)); err != nil {
		return fmt.Errorf("unseal: %w", err)
	}
	return held
}

// holds returns a *HeldError when the partition has records that are to stay, for
// which all of it is read. Released records that no caller has retried are removed
// before, so that no record is left that a caller might change.
func (k *partitionLock) holds(ctx context.Context, p Partition, table string) error {
	_, err := k.conn.Exec(ctx, fmt.Sprintf(`DELETE FROM %s WHERE state = 1 AND attempt >= 0 AND expires <= statement_timestamp()`, table))
	if err != nil {
		return fmt.Errorf("remove what was released: %w", err)
	}
	o, err := k.weigh(ctx, p)
	if err == nil && o.Held != nil {
		return o.Held
	}
	return err
}
