package redis_test

import (
	"errors"
	"strings"
	"testing"

	driver "github.com/redis/go-redis/v9"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/redis"
)

// TestFunctionsAreLoadedWhereMissing: a server may lose them at any time. Another library of
// the same kind stays.
func TestFunctionsAreLoadedWhereMissing(t *testing.T) {
	t.Parallel()
	c := realtest.OwnRedis(t).Client(t)
	for _, shards := range []int{1, 4} {
		s := newStore(t, c, redis.Options{Shards: shards})
		useAll(t, s)
		for _, empty := range []func() error{
			func() error { return c.FunctionFlush(t.Context()).Err() },
			func() error { return c.FlushAll(t.Context()).Err() },
			func() error { return c.FunctionDelete(t.Context(), s.Library()).Err() },
		} {
			check.Require(t, empty())
			changes := make([]store.Change, 20)
			for i := range changes {
				changes[i] = create(strings.Repeat("k", i+1), store.InProgress, 1)
			}
			results, err := s.Swap(t.Context(), changes)
			if err != nil || !results[19].Applied(changes[19]) {
				t.Errorf("Swap without functions = %v", err)
			}
			check.Require(t, c.FlushDB(t.Context()).Err())
		}
	}
	check.Require(t, c.FunctionLoad(t.Context(), "#!lua name=semel_other\nredis.register_function('semel_other_swap', function() return 1 end)").Err())
	useAll(t, newStore(t, c, redis.Options{}))
}

// TestTenantsShareAServer without seeing each other's records.
func TestTenantsShareAServer(t *testing.T) {
	t.Parallel()
	c := realtest.Redis(t).Client(t)
	one, other := newStore(t, c, redis.Options{}), newStore(t, c, redis.Options{})
	claim := create("key", store.InProgress, 1)
	mustApply(t, one, claim)
	check.Equal(t, current(t, other, claim), (store.Token{}), "the other tenant sees")
	useAll(t, other)
	if got := current(t, one, claim); got != claim.To.Token {
		t.Errorf("%v is current, want the claim", got)
	}
	keys, err := c.Keys(t.Context(), one.Prefix()+":*").Result()
	if err != nil || len(keys) != 4 { // the record, its two indexes, and the number of shards
		t.Errorf("the keys of the first tenant are %q, %v", keys, err)
	}
}

// TestNumberOfShardsIsKept: a store with another number would not find the records.
func TestNumberOfShardsIsKept(t *testing.T) {
	t.Parallel()
	c := realtest.Redis(t).Client(t)
	s := newStore(t, c, redis.Options{Shards: 2})
	useAll(t, s)
	for shards, want := range map[int]error{1: redis.ErrShards, 2: nil, 3: redis.ErrShards} {
		again := newStore(t, c, redis.Options{Prefix: s.Prefix(), Shards: shards})
		if _, err := again.Get(t.Context(), []store.ID{{}}); !errors.Is(err, want) {
			t.Errorf("%d shards: %v, want %v", shards, err, want)
		}
		if _, err := again.Capabilities(t.Context()); !errors.Is(err, want) {
			t.Errorf("%d shards: Capabilities = %v, want %v", shards, err, want)
		}
	}
}

// TestNewRejects options by their name, and clients that it does not know.
func TestNewRejects(t *testing.T) {
	t.Parallel()
	c := driver.NewClient(&driver.Options{})
	ring := driver.NewRing(&driver.RingOptions{})
	t.Cleanup(func() { c.Close(); ring.Close() })
	for field, o := range map[string]redis.Options{
		"Prefix": {Prefix: "a{b}"}, "Shards": {Shards: -1}, "Replicas": {Replicas: -1}, "ReplicaTimeout": {ReplicaTimeout: 1},
	} {
		if _, err := redis.New(c, o); err == nil || !strings.Contains(err.Error(), "Options."+field) {
			t.Errorf("New with a bad %s: %v", field, err)
		}
	}
	if _, err := redis.New(ring, redis.Options{}); err == nil || !strings.Contains(err.Error(), "Ring") {
		t.Errorf("New with a ring: %v", err)
	}
}
