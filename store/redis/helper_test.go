package redis_test

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	driver "github.com/redis/go-redis/v9"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/redis"
)

func TestMain(m *testing.M) { os.Exit(realtest.Main(m)) }

// newStore returns a store. Without a Prefix in o it has keys of its own.
func newStore(t testing.TB, client driver.UniversalClient, o redis.Options) *redis.Store {
	t.Helper()
	if o.Prefix == "" {
		o.Prefix = "t_" + strings.ToLower(rand.Text())
	}
	s, err := redis.New(client, o)
	check.Require(t, err, "New")
	return s
}

// create creates the record of key in the state.
func create(key string, state store.State, owner uint64) store.Change {
	return store.Change{To: store.Record{
		ID: store.NewID("test", "scope", key), Token: store.Token{State: state, Attempt: 1, Owner: owner}, Due: time.Hour,
		Operation: "test", Scope: "scope", Key: key, Fingerprint: []byte("fingerprint"),
	}}
}

// succeed ends the attempt of c.
func succeed(c store.Change) store.Change {
	to := c.To
	to.State, to.Outcome = store.Succeeded, []byte("paid")
	return store.Change{If: c.To.Token, To: to}
}

// apply makes c, and reports whether it was applied.
func apply(ctx context.Context, s store.Store, c store.Change) (bool, error) {
	results, err := s.Swap(ctx, []store.Change{c})
	return err == nil && results[0].Applied(c), err
}

func mustApply(t testing.TB, s store.Store, c store.Change) {
	t.Helper()
	if applied, err := apply(t.Context(), s, c); !applied {
		t.Fatalf("Swap = %v, %v, want applied", applied, err)
	}
}

// current returns the current token of the record of c.
func current(t testing.TB, s store.Store, c store.Change) store.Token {
	t.Helper()
	results, err := s.Get(t.Context(), []store.ID{c.To.ID})
	check.Require(t, err, "Get")
	return results[0].Token
}
