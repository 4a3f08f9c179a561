package redis

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/store"
)

// Swap applies the changes of each shard in one call of a function, and those for one node
// in one round trip. It fails as a whole, and has then written nothing, for a batch that
// the contract forbids.
func (s *Store) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	if err := store.CheckBatch(changes, maxBatch); err != nil {
		return nil, fmt.Errorf("swap: %w", err)
	}
	if err := store.CheckBytes(changes, maxBytes); err != nil {
		return nil, fmt.Errorf("swap: %w", err)
	}
	results := make([]store.SwapResult, len(changes))
	byShard := make(shardCalls)
	for i := range changes {
		c := &changes[i]
		if err := c.Check(maxOutcome); err != nil {
			results[i].Err = fmt.Errorf("swap %w", err)
			continue
		}
		of := byShard.of(s.shardOf(c.To.ID), "swap", false)
		of.args = changeArgs(of.args, c)
		of.places = append(of.places, i)
	}
	if err := s.run(ctx, true, byShard.calls()...); err != nil {
		return nil, fmt.Errorf("swap: %w", err)
	}
	err := byShard.read(func(place int, v any, now float64) (err error) {
		results[place], err = readResult(&changes[place], v, now)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("swap: %w", err)
	}
	return results, nil
}

// readResult reads the result of a change: 1 if it is applied, the current record, or nil.
func readResult(c *store.Change, v any, now float64) (store.SwapResult, error) {
	if n, ok := v.(int64); ok && n == 1 {
		return store.SwapResult{Token: c.To.Token}, nil
	}
	return readCurrent(c.To.ID, v, now)
}

// readCurrent reads a record, or nil.
func readCurrent(id store.ID, v any, now float64) (store.SwapResult, error) {
	if v == nil {
		return store.SwapResult{}, nil
	}
	text, _ := v.(string)
	r, err := readRecord(id, text, now)
	if err != nil {
		return store.SwapResult{}, err
	}
	return store.SwapResult{Token: r.Token, Record: r}, nil
}

// shardCall is a call with the places of its results among all results.
type shardCall struct {
	call

	places []int
}

// shardCalls are the calls of one function by shard.
type shardCalls map[int]*shardCall

func (m shardCalls) of(shard int, name string, reads bool) *shardCall {
	c := m[shard]
	if c == nil {
		c = &shardCall{call: call{shard: shard, name: name, reads: reads}}
		m[shard] = c
	}
	return c
}

func (m shardCalls) calls() []*call {
	calls := make([]*call, 0, len(m))
	for _, c := range m {
		calls = append(calls, &c.call)
	}
	return calls
}

// read calls fn with each result, its place, and the time of the server.
func (m shardCalls) read(fn func(place int, v any, now float64) error) error {
	for _, c := range m {
		now, err := clock(c.out)
		if err == nil && len(c.out) != len(c.places)+1 {
			err = fmt.Errorf("%d results, want %d", len(c.out)-1, len(c.places))
		}
		if err != nil {
			return err
		}
		for i, place := range c.places {
			if err := fn(place, c.out[i+1], now); err != nil {
				return err
			}
		}
	}
	return nil
}
