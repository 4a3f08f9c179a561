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
	client := realtest.OwnRedisCluster(t).Client(t)
	storetest.RunStore(t, func(t testing.TB) storetest.StoreSubject {
		return storetest.StoreSubject{Store: newStore(t, client, redis.Options{Replicas: 1})}
	})
}

// TestContractOfReplicas: the replicas confirm each change, and can be isolated.
func TestContractOfReplicas(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	group := realtest.RedisReplicas(t, 2)
	client := group.Primary.Client(t)
	storetest.RunStore(t, func(t testing.TB) storetest.StoreSubject {
		return storetest.StoreSubject{
			Store:   newStore(t, client, redis.Options{Replicas: 2}),
			Isolate: group.Isolate,
		}
	})
}

func TestContractUnderSentinel(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	client := realtest.RedisSentinel(t).Client(t)
	storetest.RunStore(t, func(t testing.TB) storetest.StoreSubject {
		return storetest.StoreSubject{Store: newStore(t, client, redis.Options{Replicas: 2})}
	})
}
