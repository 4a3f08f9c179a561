package postgres

import (
	"context"
	"fmt"
	"time"
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
	err = p.withLock(ctx, dropLock, func(ctx context.Context, k *partitionLock) error {
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
	if err != nil {
		return nil, p.store.fault("look at old partitions", err)
	}
	return old, nil
}

// old returns those that are to be dropped, unless what they hold is in the way.
// The last one stays, however old: partitions are made from its end on, so what is
// gone is never made again for keys that come late.
func (k *partitionLock) old(there []Partition) (old []Partition) {
	var last time.Time
	for _, p := range there {
		if !p.Detached && p.To.After(last) {
			last = p.To
		}
	}
	for _, p := range there {
		begun := p.Sealed || p.pending || p.Detached
		if !p.First() && (begun || p.To.Before(last) && !p.To.Add(k.options.Keep).After(k.now)) {
			old = append(old, p)
		}
	}
	return old
}

// What a partition has, and what of it holds it: neither what Purge would remove
// nor what a drop removes itself, as sqlReleased and sqlHolds have it.
const sqlWeigh = `SELECT count(*),
count(*) FILTER (WHERE state = 1 AND (attempt < 0 OR expires IS NULL OR expires > statement_timestamp())),
count(*) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 3),
count(*) FILTER (WHERE state NOT IN (1, 2, 3) AND (expires IS NULL OR expires > statement_timestamp())) FROM %s`

func (k *partitionLock) weigh(ctx context.Context, one Partition) (OldPartition, error) {
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
