package redis_test

import (
	"os"
	"strings"
	"testing"

	"crypto/rand"

	driver "github.com/redis/go-redis/v9"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/redis"
)

func TestMain(m *testing.M) { os.Exit(realtest.Main(m)) }

// newStore returns a store with keys of its own.
func newStore(t testing.TB, client driver.UniversalClient, o redis.Options) *redis.Store {
	t.Helper()
	o.Prefix = "t_" + strings.ToLower(rand.Text())
	s, err := redis.New(client, o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return s
}
