package redis_test

import (
	"testing"
	"time"

	driver "github.com/redis/go-redis/v9"

	"github.com/semelgo/semel/internal/plainstore/servers"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/redis"
	"github.com/semelgo/semel/store/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "redis")
	client, proxies := throughProxy(t, realtest.Redis(t))
	runContract(t, client, proxies, redis.Options{}, nil, nil)
}

// TestContractOfShards: with several shards, Dequeue looks first and then claims.
func TestContractOfShards(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	client, proxies := throughProxy(t, realtest.Redis(t))
	runContract(t, client, proxies, redis.Options{Shards: 3}, nil, storetest.StoreCallParts())
}

// throughProxy returns a client of a server, by connections through a proxy. Its calls may
// wait for replicas up to a minute.
func throughProxy(t *testing.T, server *realtest.RedisServer) (*driver.Client, *realtest.RedisProxies) {
	t.Helper()
	proxies := realtest.NewRedisProxies(t, server)
	client := driver.NewClient(&driver.Options{Addr: server.Addr(), Dialer: proxies.Dial, ReadTimeout: 2 * time.Minute})
	t.Cleanup(func() { client.Close() })
	return client, proxies
}

// runContract runs the suite, or some parts of it, on stores over the client, whose proxies
// lose replies.
func runContract(
	t *testing.T, client driver.UniversalClient, proxies *realtest.RedisProxies, o redis.Options,
	isolate func(*redis.Store) (restore func()), parts []string,
) {
	t.Helper()
	storetest.RunStore(t, func(t testing.TB) storetest.StoreSubject {
		s := newStore(t, client, o)
		sub := storetest.StoreSubject{Store: s, Lose: func() func() bool { return proxies.EatReply(servers.RedisWrites) }}
		if isolate != nil {
			sub.Isolate = func() func() { return isolate(s) }
		}
		return sub
	}, parts...)
}
