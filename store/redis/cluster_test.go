package redis_test

import (
	"testing"
	"time"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/redis"
	"github.com/semelgo/semel/store/storetest"
)

// patient returns the options of a store that waits long enough for its replicas on a slow machine.
func patient(replicas int) redis.Options {
	return redis.Options{Replicas: replicas, ReplicaTimeout: time.Minute}
}

func TestContractOnACluster(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	cluster := realtest.OwnRedisCluster(t)
	cluster.Proxies = realtest.NewRedisProxies(t, cluster.Nodes...)
	runContract(t, cluster.Client(t), cluster.Proxies, patient(1), nil, storetest.StoreCallParts())
}

// TestContractOfReplicas: the replicas confirm each change, and can be isolated.
func TestContractOfReplicas(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	group := realtest.RedisReplicas(t, 2)
	client, proxies := throughProxy(t, group.Primary)
	runContract(t, client, proxies, patient(2), func(s *redis.Store) func() {
		s.SetReplicaTimeout(time.Second) // each call waits that long
		restore := group.Isolate()
		return func() {
			restore()
			s.SetReplicaTimeout(time.Minute)
		}
	}, storetest.StoreCallParts())
}

func TestContractUnderSentinel(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	group := realtest.RedisSentinel(t)
	group.Proxies = realtest.NewRedisProxies(t, group.Servers()...)
	runContract(t, group.Client(t), group.Proxies, patient(2), nil, storetest.StoreCallParts())
}
