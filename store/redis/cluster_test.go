package redis_test

import (
	"testing"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/redis"
	"github.com/semelgo/semel/store/storetest"
)

func TestContractOnACluster(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	cluster := realtest.OwnRedisCluster(t)
	cluster.Proxies = realtest.NewRedisProxies(t, cluster.Nodes...)
	runContract(t, cluster.Client(t), cluster.Proxies, redis.Options{Replicas: 1}, nil, storetest.StoreCallParts())
}

// TestContractOfReplicas: the replicas confirm each change, and can be isolated.
func TestContractOfReplicas(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	group := realtest.RedisReplicas(t, 2)
	client, proxies := throughProxy(t, group.Primary)
	runContract(t, client, proxies, redis.Options{Replicas: 2}, group.Isolate, storetest.StoreCallParts())
}

func TestContractUnderSentinel(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	group := realtest.RedisSentinel(t)
	group.Proxies = realtest.NewRedisProxies(t, group.Servers()...)
	runContract(t, group.Client(t), group.Proxies, redis.Options{Replicas: 2}, nil, storetest.StoreCallParts())
}
