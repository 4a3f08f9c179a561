package redis

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/semelgo/semel/store"
)

// Get reads from primaries. If a final state is among the results, and replicas confirm, it
// reads again and waits for them.
func (s *Store) Get(ctx context.Context, ids []store.ID) ([]store.SwapResult, error) {
	results, err := s.get(ctx, false, ids)
	if err == nil && s.options.Replicas > 0 && slices.ContainsFunc(results, isFinal) {
		results, err = s.get(ctx, true, ids)
	}
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	return results, nil
}

func isFinal(r store.SwapResult) bool { return r.Token.State.Final() }

func (s *Store) get(ctx context.Context, confirm bool, ids []store.ID) ([]store.SwapResult, error) {
	byShard := make(shardCalls)
	for i := range ids {
		of := byShard.of(s.shardOf(ids[i]), "get", true)
		of.args = append(of.args, ids[i][:])
		of.places = append(of.places, i)
	}
	if err := s.run(ctx, confirm, byShard.calls()...); err != nil {
		return nil, err
	}
	results := make([]store.SwapResult, len(ids))
	return results, byShard.read(func(place int, v any, now float64) (err error) {
		results[place], err = readCurrent(ids[place], v, now)
		return err
	})
}

// Scan reads a page of each shard. It does not wait for replicas, because its results are
// hints.
func (s *Store) Scan(ctx context.Context, q store.Query) ([]store.Record, error) {
	records, err := s.scan(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	return records, nil
}

func (s *Store) scan(ctx context.Context, q store.Query) ([]store.Record, error) {
	skip := max(q.Skip, 0)
	var all []store.Record
	for _, which := range indexesOf(q) {
		for shard := range s.options.Shards {
			records, err := s.scanShard(ctx, shard, which, q, skip+q.PageSize())
			if err != nil {
				return nil, err
			}
			all = append(all, records...)
		}
	}
	byID := func(a, b store.Record) int { return bytes.Compare(a.ID[:], b.ID[:]) }
	slices.SortFunc(all, func(a, b store.Record) int {
		if q.Due {
			return cmp.Or(cmp.Compare(a.Due, b.Due), byID(a, b))
		}
		return byID(a, b)
	})
	all = all[min(skip, len(all)):]
	return all[:min(q.PageSize(), len(all))], nil
}

// listing is an index that a query reads, and the state of the records in it.
type listing struct {
	key   string
	state store.State // Absent: any
}

func indexesOf(q store.Query) []listing {
	if !q.Due {
		return []listing{{":i", q.State}}
	}
	due := []listing{{":p", store.Pending}, {":l", store.InProgress}}
	return slices.DeleteFunc(due, func(l listing) bool { return q.State != store.Absent && q.State != l.state })
}

// scanShard returns the first records of a shard. Each call of the server looks at a part of
// the index.
func (s *Store) scanShard(ctx context.Context, shard int, which listing, q store.Query, most int) ([]store.Record, error) {
	var records []store.Record
	var after any = 0
	if !q.Due {
		after = []byte{}
		if q.After != (store.ID{}) {
			after = q.After[:]
		}
	}
	for after != nil && len(records) < most {
		c := &call{shard: shard, name: "scan", reads: true, args: []any{which.key, after, int(which.state), q.Operation, most - len(records)}}
		if err := s.run(ctx, false, c); err != nil {
			return nil, err
		}
		now, err := clock(c.out)
		if err != nil {
			return nil, err
		}
		part, err := readRecords(c.out[2:], now)
		if err != nil {
			return nil, err
		}
		records, after = append(records, part...), c.out[1]
	}
	return records, nil
}
