package redis

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/semelgo/semel/store"
)

// Dequeue claims in one call of a function if there is one shard. With more shards it looks
// at the first records of each, and then claims the first of all.
//
// It returns fewer records than there are if they have more than 4 MiB.
func (s *Store) Dequeue(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	if err := d.Check(maxBatch); err != nil {
		return nil, fmt.Errorf("dequeue: %w", err)
	}
	records, err := s.dequeue(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("dequeue: %w", err)
	}
	return records, nil
}

func (s *Store) dequeue(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	owner := binary.BigEndian.AppendUint64(nil, d.Owner)
	switch {
	case d.Reread:
		return s.claimed(ctx, d, owner)
	case s.options.Shards == 1:
		c := &call{name: "dequeue", args: []any{d.Operation, owner, d.Lease.Microseconds(), d.Limit}}
		return s.records(ctx, c)
	}
	unlock, err := s.lock(ctx, d.Operation, owner)
	if err != nil || unlock == nil {
		return nil, err
	}
	defer unlock()
	records, err := s.claimed(ctx, d, owner)
	if err != nil || len(records) > 0 {
		return records, err
	}
	return s.take(ctx, d, owner)
}

// records makes calls whose results are claims.
func (s *Store) records(ctx context.Context, calls ...*call) ([]store.Record, error) {
	if err := s.run(ctx, true, calls...); err != nil {
		return nil, err
	}
	var records []store.Record
	for _, c := range calls {
		now, err := clock(c.out)
		if err != nil {
			return nil, err
		}
		part, err := readRecords(c.out[1:], now)
		if err != nil {
			return nil, err
		}
		records = append(records, part...)
	}
	return records, nil
}

// claimed returns the current claims of d's Owner. Their order by Due is no longer known.
func (s *Store) claimed(ctx context.Context, d store.Dequeue, owner []byte) ([]store.Record, error) {
	records, err := s.records(ctx, s.onEach("claimed", d.Operation, owner)...)
	slices.SortFunc(records, func(a, b store.Record) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return records, err
}

// onEach returns calls of a function that reads, one for each shard.
func (s *Store) onEach(name string, args ...any) []*call {
	calls := make([]*call, s.options.Shards)
	for shard := range calls {
		calls[shard] = &call{shard: shard, name: name, reads: true, args: args}
	}
	return calls
}

// waiter is a Pending record that a Dequeue may claim.
type waiter struct {
	id       store.ID
	token    string
	priority byte
	due      float64
}

// take claims the first records of all shards.
func (s *Store) take(ctx context.Context, d store.Dequeue, owner []byte) ([]store.Record, error) {
	first, err := s.peek(ctx, d)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	place := make(map[store.ID]int, len(first))
	byShard := make(shardCalls)
	for i, w := range first {
		of := byShard.of(s.shardOf(w.id), "take", false)
		if of.args == nil {
			of.args = []any{d.Operation, owner, d.Lease.Microseconds()}
		}
		of.args = append(of.args, w.id[:], w.token)
		place[w.id] = i
	}
	records, err := s.records(ctx, byShard.calls()...)
	slices.SortFunc(records, func(a, b store.Record) int { return cmp.Compare(place[a.ID], place[b.ID]) })
	return records, err
}

// peek returns the first waiting records, in order.
func (s *Store) peek(ctx context.Context, d store.Dequeue) ([]waiter, error) {
	calls := s.onEach("peek", d.Operation, d.Limit)
	if err := s.run(ctx, false, calls...); err != nil {
		return nil, err
	}
	var all []waiter
	for _, c := range calls {
		for pairs := c.out[1:]; len(pairs) > 1; pairs = pairs[2:] {
			id, err := readID(pairs[0])
			if err != nil {
				return nil, err
			}
			head, _ := pairs[1].(string)
			if len(head) < atOperation {
				return nil, errRecord
			}
			all = append(all, waiter{id, head[:tokenSize], head[atPriority], timeAt(head, atDue)})
		}
	}
	slices.SortFunc(all, func(a, b waiter) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.due, b.due), bytes.Compare(a.id[:], b.id[:]))
	})
	return all[:min(d.Limit, len(all))], nil
}

// lockTime is longer than a Dequeue takes. A Dequeue that stops for longer can claim after
// another one with the same owner.
const lockTime = 30 * time.Second

// lock excludes other calls with the same owner and operation. It returns a nil function if
// another call runs.
func (s *Store) lock(ctx context.Context, operation string, owner []byte) (unlock func(), err error) {
	name, value := ":d:"+string(owner)+operation, rand.Text()
	c := &call{shard: int(owner[7]) % s.options.Shards, name: "lock", args: []any{name, value, lockTime.Milliseconds()}}
	if err := s.run(ctx, false, c); err != nil || len(c.out) == 0 {
		return nil, err
	}
	return func() {
		c.name = "unlock"
		_ = s.run(context.WithoutCancel(ctx), false, c) // it ends after lockTime
	}, nil
}
