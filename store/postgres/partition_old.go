package postgres

import (
	"context"
	"fmt"
)

// OldPartition is one that [Partitions.Drop] would drop, or find to be held.
type OldPartition struct {
	Partition

	// Records is how many it has, those that hold it among them.
	Records int64
	// Held is why it would stay. Nil: it would go.
	Held *HeldError
}

// Old returns what Drop would look at now, in the order of times, and changes
// nothing. It reads all records of those partitions, and takes turns with those
// who change partitions. By the time of a Drop it may be otherwise.
func (p *Partitions) Old(ctx context.Context) (old []OldPartition, err error) {
	err = p.withLock(ctx, func(ctx context.Context, k *keeper) error {
		there, err := list(ctx, k.conn, k.on)
		if err != nil {
			return err
		}
		for _, one := range there {
			if !k.isOld(one) {
				continue
			}
			o, err := k.weigh(ctx, one)
			if err != nil {
				return fmt.Errorf("partition %s: %w", one.Name, err)
			}
			old = append(old, o)
		}
		return nil
	})
	if err != nil {
		return nil, fault("look at old partitions", err)
	}
	return old, nil
}

// isOld tells whether one is to be dropped, unless what it holds is in the way.
func (k *keeper) isOld(one Partition) bool {
	begun := one.Sealed || one.pending || one.Detached
	return !one.First() && (begun || !one.To.Add(k.options.Keep).After(k.now))
}

// What a partition has, and what of it holds it: neither what Purge would remove
// nor what a drop removes itself, as sqlReleased and sqlHolds have it.
const sqlWeigh = `SELECT count(*),
count(*) FILTER (WHERE state = 1 AND (attempt < 0 OR expires IS NULL OR expires > statement_timestamp())),
count(*) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 3),
count(*) FILTER (WHERE state NOT IN (1, 2, 3) AND (expires IS NULL OR expires > statement_timestamp())) FROM %s`

func (k *keeper) weigh(ctx context.Context, one Partition) (OldPartition, error) {
	o := OldPartition{Partition: one}
	none := HeldError{Partition: one.Name}
	held := none
	err := k.conn.QueryRow(ctx, fmt.Sprintf(sqlWeigh, k.table(one.Name))).
		Scan(&o.Records, &held.Pending, &held.InProgress, &held.InDoubt, &held.Kept)
	if err != nil {
		return o, fmt.Errorf("read what it holds: %w", err)
	}
	if held != none {
		o.Held = &held
	}
	return o, nil
}
