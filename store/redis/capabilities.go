package redis

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/semelgo/semel/store"
)

// Capabilities reads the settings of each primary. It fails, and names the setting, if the
// store cannot work with it: a version below 7.0, a server that is a replica, a
// maxmemory-policy other than noeviction together with a maxmemory, and a node of a cluster
// behind a client for one server.
//
// What the records survive depends on appendonly, appendfsync, no-appendfsync-on-rewrite and
// on the replicas that are connected. Under Sentinel the store assumes that there are some.
// The settings of the replicas are not read. Where the server forbids CONFIG GET, appendfsync counts as everysec.
//
// Outcomes have at most 1 MiB, and batches at most 250 changes with 4 MiB.
func (s *Store) Capabilities(ctx context.Context) (store.Capabilities, error) {
	caps := store.Capabilities{
		Linearizable: true, Clock: store.ServerClock, Ordered: true, ConcurrentSwaps: 2,
		MaxOutcome: maxOutcome, MaxBatch: maxBatch, MaxBytes: maxBytes,
	}
	err := s.client.primaries(ctx, func(ctx context.Context, node *redis.Client) error {
		v, err := readSettings(ctx, node)
		if err != nil {
			return err
		}
		if err := v.check(s.client.cluster != nil); err != nil {
			return err
		}
		survives, because := v.survives(s.options, s.client.underSentinel())
		if caps.Survives == 0 || survives < caps.Survives {
			caps.Survives, caps.SurvivesBecause = survives, because
		}
		return nil
	})
	if err == nil {
		err = s.checkShards(ctx)
	}
	if err != nil {
		return store.Capabilities{}, fmt.Errorf("read capabilities: %w", err)
	}
	return caps, nil
}
