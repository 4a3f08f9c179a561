package realtest

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semelgo/semel/internal/check"
)

// RedisGroup is a Redis primary with replicas for one test, which Sentinel may watch.
type RedisGroup struct {
	Primary   *RedisServer
	Replicas  []*RedisServer
	Proxies   *RedisProxies // for later clients of Sentinel. Nil: none
	sentinels []string      // addresses
}

// RedisReplicas starts a primary with n replicas, which follow it when RedisReplicas returns.
// All of them end with the test. Settings are for each of them, as those of [OwnRedis].
func RedisReplicas(tb testing.TB, n int, settings ...string) *RedisGroup {
	tb.Helper()
	g := &RedisGroup{Primary: OwnRedis(tb, settings...)}
	for range n {
		g.Replicas = append(g.Replicas, OwnRedis(tb, append(slices.Clone(settings), "replicaof "+redisAddr(g.Primary.Addr()))...))
	}
	g.AwaitReplicas(tb)
	return g
}

// redisAddr returns an address as Redis writes it.
func redisAddr(addr string) string { return strings.Replace(addr, ":", " ", 1) }

// AwaitReplicas waits until all replicas follow the primary.
func (g *RedisGroup) AwaitReplicas(tb testing.TB) {
	tb.Helper()
	awaitRedisReplicas(tb, g.Primary.Client(tb), len(g.Replicas))
}

func awaitRedisReplicas(tb testing.TB, primary *redis.Client, n int) {
	tb.Helper()
	Poll(tb, "the replicas", func() bool {
		info, err := primary.Info(tb.Context(), "replication").Result()
		return err == nil && strings.Count(info, ",state=online,") == n
	})
}

// LoseReplica kills a replica, and returns when the primary has noticed.
func (g *RedisGroup) LoseReplica(tb testing.TB, replica *RedisServer) {
	tb.Helper()
	replica.Kill()
	g.Replicas = slices.DeleteFunc(slices.Clone(g.Replicas), func(r *RedisServer) bool { return r == replica })
	g.AwaitReplicas(tb)
}

// Isolate stops the replicas in their tracks, so that no change is confirmed until restore.
func (g *RedisGroup) Isolate() (restore func()) {
	for _, r := range g.Replicas {
		r.Pause()
	}
	return func() {
		for _, r := range g.Replicas {
			r.Resume()
		}
	}
}

// CutOff lets the replicas follow a server that does not exist, and returns when the primary
// has lost them. They run, so Sentinel can promote them.
func (g *RedisGroup) CutOff(tb testing.TB, replicas ...*RedisServer) {
	tb.Helper()
	for _, r := range replicas {
		check.Require(tb, r.Client(tb).SlaveOf(tb.Context(), "127.0.0.1", "1").Err(), "cut a replica off")
	}
	awaitRedisReplicas(tb, g.Primary.Client(tb), len(g.Replicas)-len(replicas))
}

// Follow lets a server of the group follow a primary.
func (g *RedisGroup) Follow(tb testing.TB, server, primary *RedisServer) {
	tb.Helper()
	host, port, _ := net.SplitHostPort(primary.Addr())
	check.Require(tb, server.Client(tb).SlaveOf(tb.Context(), host, port).Err(), "follow a primary")
}

// redisGroupName is the name by which Sentinel knows a group.
const redisGroupName = "group"

// Servers detect the failure of another one after undetected. Nodes of a cluster detect it after
// detected while a test waits for a failover. A slow machine then causes no failover that the test
// did not cause.
const undetected, detected = "60000", "2000" // milliseconds

// replicasPatience is the read timeout of the clients: a call may wait a minute for replicas.
const replicasPatience = 2 * time.Minute

// RedisSentinel is [RedisReplicas] with two replicas and three Sentinels, which replace the
// primary in AwaitPromoted.
func RedisSentinel(tb testing.TB, settings ...string) *RedisGroup {
	tb.Helper()
	g := RedisReplicas(tb, 2, settings...)
	for range 3 {
		s := &RedisServer{ownHandle(tb, redisEngine(), launchSentinel, []string{
			"sentinel monitor " + redisGroupName + " " + redisAddr(g.Primary.Addr()) + " 2",
			"sentinel down-after-milliseconds " + redisGroupName + " " + undetected,
			"sentinel failover-timeout " + redisGroupName + " " + undetected, // replicas that are cut off remain so
		})}
		g.sentinels = append(g.sentinels, s.Addr())
	}
	for _, addr := range g.sentinels {
		s := redis.NewSentinelClient(&redis.Options{Addr: addr})
		tb.Cleanup(func() { s.Close() })
		Poll(tb, "a Sentinel", func() bool {
			of, err := s.Master(tb.Context(), redisGroupName).Result()
			return err == nil && of["num-other-sentinels"] == "2" && of["num-slaves"] == "2"
		})
	}
	return g
}

// Servers returns the primary and the replicas.
func (g *RedisGroup) Servers() []*RedisServer {
	return append([]*RedisServer{g.Primary}, g.Replicas...)
}

// Client returns a client that follows a failover of Sentinel. It is closed at the end of the
// test.
func (g *RedisGroup) Client(tb testing.TB) *redis.Client {
	tb.Helper()
	c := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: redisGroupName, SentinelAddrs: g.sentinels, Dialer: g.Proxies.dialer(), ReadTimeout: replicasPatience,
	})
	tb.Cleanup(func() { c.Close() })
	return c
}

// AwaitPromoted asks a Sentinel to replace the primary, which was killed, and returns the new one.
// The Sentinel would detect the failure after a minute. If it detected failures earlier, it would
// refuse replicas that have been without a primary for ten times that time, as in a slow test.
func (g *RedisGroup) AwaitPromoted(tb testing.TB) *RedisServer {
	tb.Helper()
	s := redis.NewSentinelClient(&redis.Options{Addr: g.sentinels[0]})
	defer s.Close()
	var addr string
	Poll(tb, "a failover", func() bool {
		at, err := s.GetMasterAddrByName(tb.Context(), redisGroupName).Result()
		if err != nil || len(at) != 2 {
			return false
		}
		if addr = net.JoinHostPort(at[0], at[1]); addr != g.Primary.Addr() {
			return true
		}
		_ = s.Failover(tb.Context(), redisGroupName) // an error: one has begun, or no replica has answered yet
		return false
	})
	i := slices.IndexFunc(g.Replicas, func(r *RedisServer) bool { return r.Addr() == addr })
	if i < 0 {
		tb.Fatalf("an unknown server was promoted: %s", addr)
	}
	promoted := g.Replicas[i].Client(tb)
	Poll(tb, "a new primary", func() bool {
		info, err := promoted.Info(tb.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "role:master")
	})
	return g.Replicas[i]
}

// RedisCluster is a Redis Cluster for one test.
type RedisCluster struct {
	Nodes   []*RedisServer // at first, three primaries and then their replicas
	Proxies *RedisProxies  // for later clients. Nil: none
}

// OwnRedisCluster starts a cluster of three primaries, each with a replica, which ends with
// the test. A replica replaces its primary in AwaitPrimary.
func OwnRedisCluster(tb testing.TB, settings ...string) *RedisCluster {
	tb.Helper()
	const primaries, slots = 3, 16384
	c := &RedisCluster{}
	ctx := tb.Context()
	buses := make([]int, 2*primaries)
	for i := range buses {
		buses[i] = check.Must(freePort(ctx))(tb) // by default an ephemeral port, which another process may have at a restart
		c.Nodes = append(c.Nodes, OwnRedis(tb, append([]string{
			"cluster-enabled yes", "cluster-node-timeout " + detected, "cluster-port " + strconv.Itoa(buses[i]),
			"cluster-replica-validity-factor 0", // a replica replaces its primary however long a slow machine takes
		}, settings...)...))
	}
	clients, ids := make([]*redis.Client, len(c.Nodes)), make([]string, len(c.Nodes))
	must := func(err error) {
		check.Require(tb, err, "form a cluster")
	}
	host, port, _ := net.SplitHostPort(c.Nodes[0].Addr())
	for i, n := range c.Nodes {
		clients[i] = n.Client(tb)
		id, err := clients[i].Do(ctx, "CLUSTER", "MYID").Text()
		must(err)
		ids[i] = id
		must(clients[i].Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err())
		if i < primaries {
			must(clients[i].ClusterAddSlotsRange(ctx, i*slots/primaries, (i+1)*slots/primaries-1).Err())
		}
		if i > 0 {
			must(clients[i].Do(ctx, "CLUSTER", "MEET", host, port, buses[0]).Err())
		}
	}
	c.await(tb, clients, "cluster_known_nodes:"+strconv.Itoa(len(c.Nodes)))
	c.detectAfter(tb, undetected)
	for i := primaries; i < len(c.Nodes); i++ {
		Poll(tb, "a replica to know its primary", func() bool { return clients[i].ClusterReplicate(ctx, ids[i-primaries]).Err() == nil })
	}
	c.await(tb, clients, "cluster_state:ok")
	for _, primary := range clients[:primaries] {
		awaitRedisReplicas(tb, primary, 1)
	}
	return c
}

// detectAfter sets the time after which the nodes that run detect the failure of another one.
func (c *RedisCluster) detectAfter(tb testing.TB, milliseconds string) {
	tb.Helper()
	for _, n := range c.Nodes {
		if err := n.Client(tb).ConfigSet(tb.Context(), "cluster-node-timeout", milliseconds).Err(); err != nil {
			tb.Logf("node %s does not run: %v", n.Addr(), err)
		}
	}
}

// await waits until all nodes say that about their cluster.
func (c *RedisCluster) await(tb testing.TB, clients []*redis.Client, line string) {
	tb.Helper()
	for i, node := range clients {
		Poll(tb, fmt.Sprintf("%s of node %d", line, i), func() bool {
			info, err := node.ClusterInfo(tb.Context()).Result()
			return err == nil && strings.Contains(info, line+"\r\n")
		})
	}
}

// AwaitPrimary lets the node replace its primary, which was killed.
func (c *RedisCluster) AwaitPrimary(tb testing.TB, node *RedisServer) {
	tb.Helper()
	c.detectAfter(tb, detected)
	defer c.detectAfter(tb, undetected)
	client := node.Client(tb)
	Poll(tb, "a new primary", func() bool {
		info, err := client.Info(tb.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "role:master")
	})
}

// Client returns a client of the cluster, which is closed at the end of the test.
func (c *RedisCluster) Client(tb testing.TB) *redis.ClusterClient {
	tb.Helper()
	addrs := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		addrs[i] = n.Addr()
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, Dialer: c.Proxies.dialer(), ReadTimeout: replicasPatience})
	tb.Cleanup(func() { client.Close() })
	return client
}
