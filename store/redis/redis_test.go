package redis_test

import (
	"testing"

	driver "github.com/redis/go-redis/v9"

	"github.com/semelgo/semel/internal/plainstore/servers"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/redis"
	"github.com/semelgo/semel/store/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "redis")
	runContract(t, redis.Options{})
}

// TestContractOfShards: with several shards, Dequeue looks first and then claims.
func TestContractOfShards(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	runContract(t, redis.Options{Shards: 3})
}

// runContract runs the suite on stores of one server, by connections through a proxy that
// loses replies.
func runContract(t *testing.T, o redis.Options) {
	t.Helper()
	server := realtest.Redis(t)
	proxy := realtest.NewRedisProxy(t, server.Addr())
	client := driver.NewClient(&driver.Options{Addr: proxy.Addr()})
	t.Cleanup(func() { client.Close() })
	storetest.RunStore(t, func(t testing.TB) storetest.StoreSubject {
		return storetest.StoreSubject{
			Store: newStore(t, client, o),
			Lose: func() func() bool {
				fault := proxy.EatReply(servers.RedisWrites)
				return func() bool { return !fault.Disarm() }
			},
		}
	})
}
