package redis_test

import (
	"testing"

	driver "github.com/redis/go-redis/v9"

	"github.com/semelgo/semel/internal/plainstore/servers"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/redis"
)

// startLoad starts callers of stores that wait for one replica.
func startLoad(t *testing.T, client driver.UniversalClient) *servers.Load {
	t.Helper()
	o := redis.Options{Replicas: 1}
	o.Prefix = newStore(t, client, o).Prefix()
	return servers.StartLoad(t, func() store.Store { return newStore(t, client, o) })
}

// TestPrimariesOfAClusterAreKilled one after another, while callers use all of them. Their
// replicas replace them, and confirm again when the killed servers are back. No answer is
// lost, and no key runs twice.
func TestPrimariesOfAClusterAreKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	cluster := realtest.OwnRedisCluster(t)
	l := startLoad(t, cluster.Client(t))
	for i, primary := range cluster.Nodes[:3] {
		l.AwaitAnswers(200)
		primary.Kill()
		cluster.AwaitPrimary(t, cluster.Nodes[3+i])
		primary.Start(t)
		l.AwaitAnswers(200)
	}
	l.End()
}

// TestPrimaryUnderSentinelIsKilled likewise. One replica is lost first, so that the other one
// confirms each change.
func TestPrimaryUnderSentinelIsKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	group := realtest.RedisSentinel(t)
	group.LoseReplica(t, group.Replicas[0])
	l := startLoad(t, group.Client(t))
	l.AwaitAnswers(500)
	killed := group.Primary
	killed.Kill()
	promoted := group.AwaitPromoted(t)
	killed.Start(t)
	group.Follow(t, killed, promoted)
	l.AwaitAnswers(500)
	l.End()
}
