package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/semelgo/semel/store"
)

// Limits of one call, which bound the time that it takes the server.
const (
	maxOutcome = 1 << 20
	maxBatch   = 250
	maxBytes   = 4 << 20
)

var (
	_ store.Store    = (*Store)(nil)
	_ store.Auditor  = (*Store)(nil)
	_ store.Dequeuer = (*Store)(nil)
)

var (
	// ErrNotConfirmed means that fewer replicas than Options.Replicas have confirmed a
	// call in time. Nothing is known: the call may have been applied.
	ErrNotConfirmed = errors.New("semel/redis: too few replicas have confirmed")

	// ErrShards means that the records of this prefix have another number of shards
	// than Options.Shards.
	ErrShards = errors.New("semel/redis: another number of shards")
)

// Store keeps records in Redis. Its methods may be called concurrently.
type Store struct {
	client  router
	options Options
	library module
	checked atomic.Bool // the number of shards is that of the database
}

// New returns a store over a client of one server, of a primary under Sentinel
// (*redis.Client) or of a Redis Cluster (*redis.ClusterClient). It does not use the client
// yet: the first call returns an error of the server. The caller closes the client when the
// store is no longer used.
func New(client redis.UniversalClient, o Options) (*Store, error) {
	r, err := newRouter(client)
	if err != nil {
		return nil, err
	}
	_, cluster := client.(*redis.ClusterClient)
	if o, err = o.withDefaults(cluster); err != nil {
		return nil, err
	}
	return &Store{client: r, options: o, library: newLibrary()}, nil
}

// key returns the beginning of the keys of a shard.
func (s *Store) key(shard int) string { return s.options.Prefix + ":{" + strconv.Itoa(shard) + "}" }

// shardOf returns the shard of a record. An ID ends with bits of a digest.
func (s *Store) shardOf(id store.ID) int {
	return (int(id[14])<<8 | int(id[15])) % s.options.Shards
}

// checkShards compares the number of shards with that of the database, once. The first
// store that uses the prefix sets it.
func (s *Store) checkShards(ctx context.Context) error {
	if s.checked.Load() {
		return nil
	}
	c := &call{name: "shards", args: []any{s.options.Shards}}
	if err := s.runUnchecked(ctx, true, c); err != nil {
		return err
	}
	if got := fmt.Sprint(c.out...); got != strconv.Itoa(s.options.Shards) {
		return fmt.Errorf("%w: Options.Shards is %d, and the records with the prefix %q have %s", ErrShards, s.options.Shards, s.options.Prefix, got)
	}
	s.checked.Store(true)
	return nil
}
