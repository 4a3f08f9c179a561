package postgres

import (
	"context"
	"fmt"
)

// OldPartition is a partition that [Partitions.Drop] would drop, or would find to
// be held.
type OldPartition struct {
	Partition

	// Records is the number of its records.
	Records int64
	// Held is why the partition would stay. Nil: it would be dropped.
	Held *HeldError
}

// Old returns the partitions that Drop would check now, sorted by time, and changes
// nothing. It reads all records of those partitions, and excludes other changes of
// partitions meanwhile. A later Drop may find another state.
func (p *Partitions) Old(ctx context.Context) (old []OldPartition, err error) {
	err = p.withLock(ctx, "look at old partitions", dropLock, func(ctx context.Context, k *partitionLock) error {
		there, err := list(ctx, k.conn, k.on)
		if err != nil {
			return err
		}
		for _, one := range k.old(there) {
			o, err := k.weigh(ctx, one)
			if err != nil {
				return fmt.Errorf("partition %s: %w", one.Name, err)
			}
			old = append(old, o)
		}
		return nil
	})
	return old, err
}

// old returns the partitions to drop if they hold nothing. The last partition
// always stays: new partitions begin at its end, so a dropped partition is never
// made again for late keys.
func (k *partitionLock) old(there []Partition) (old []Partition) {
	last := lastEnd(there)
	for _, p := range there {
		begun := p.Sealed || p.pending || p.Detached
		if !p.First() && (begun || p.To.Before(last) && !p.To.Add(k.options.Keep).After(k.now)) {
			old = append(old, p)
		}
	}
	return old
}

// The number of a partition's records, and of those that hold it. Records that
// Purge would remove, or that the drop itself removes, do not hold it.
const sqlWeigh = `SELECT count(*),
count(*) FILTER (WHERE state = 1 AND (attempt < 0 OR expires IS NULL OR expires > statement_timestamp())),
count(*) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 3),
count(*) FILTER (WHERE state NOT IN (1, 2, 3) AND (expires IS NULL OR expires > statement_timestamp())) FROM %s`

func (k *partitionLock) weigh(ctx context.Context, one Partition) (OldPartition, error) {
	o := OldPartition{Partition: one}
	none := HeldError{Partition: one.Name}
	held := none
	err := k.conn.QueryRow(ctx, fmt.Sprintf(sqlWeigh, k.on.beside(one.Name))).
		Scan(&o.Records, &held.Pending, &held.InProgress, &held.InDoubt, &held.Kept)
	if err != nil {
		return o, fmt.Errorf("read what it holds: %w", err)
	}
	if held != none {
		o.Held = &held
	}
	return o, nil
}
