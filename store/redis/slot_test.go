package redis_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	driver "github.com/redis/go-redis/v9"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/redis"
)

// TestSlotMovesToAnotherNode: while some of its keys are at the one node and some at the
// other, a key that has a record gets no second one. Afterwards all records are there.
func TestSlotMovesToAnotherNode(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	cluster := realtest.OwnRedisCluster(t)
	s := newStore(t, cluster.Client(t), redis.Options{Shards: 1, AcceptFailoverLoss: true})
	const records = 40
	claims := make([]store.Change, records)
	for i := range claims {
		claims[i] = create(fmt.Sprint(i), store.InProgress, 1)
		mustApply(t, s, claims[i])
	}
	m := newMove(t, cluster, s.Prefix()+":{0}")
	keys := m.begin()
	if len(keys) != records+3 { // the ids, the leases, and the number of shards
		t.Fatalf("%d keys, want %d", len(keys), records+3)
	}
	rivals := make([]store.Change, records)
	for i := range rivals {
		rivals[i] = create(fmt.Sprint(i), store.InProgress, 2)
	}
	for half := range 2 {
		m.migrate(keys[half*len(keys)/2 : (half+1)*len(keys)/2])
		results, err := s.Swap(t.Context(), rivals)
		for i := range results {
			if err == nil && results[i].Applied(rivals[i]) {
				t.Errorf("with %d of 2 halves at the other node, record %d is created again", half+1, i)
			}
		}
	}
	m.end()
	for _, c := range claims {
		check.Equal(t, current(t, s, c), c.To.Token, "is current")
		mustApply(t, s, succeed(c))
	}
	if left, err := s.Scan(t.Context(), store.Query{Limit: 2 * records}); err != nil || len(left) != records {
		t.Errorf("Scan = %d records, %v", len(left), err)
	}
}

// move moves a slot from the node that has it to another one.
type move struct {
	t        *testing.T
	slot     int
	from, to *driver.Client
	target   string // address of the other node
}

func newMove(t *testing.T, cluster *realtest.RedisCluster, key string) *move {
	t.Helper()
	m := &move{t: t}
	for _, n := range cluster.Nodes[:3] {
		c := n.Client(t)
		if m.slot == 0 {
			m.slot = int(c.ClusterKeySlot(t.Context(), key).Val())
		}
		if len(c.ClusterGetKeysInSlot(t.Context(), m.slot, 1).Val()) > 0 {
			m.from = c
		} else {
			m.to, m.target = c, n.Addr()
		}
	}
	return m
}

func (m *move) do(c *driver.Client, args ...any) {
	m.t.Helper()
	if err := c.Do(m.t.Context(), args...).Err(); err != nil {
		m.t.Fatalf("%v: %v", args, err)
	}
}

func (m *move) id(c *driver.Client) string {
	return c.Do(m.t.Context(), "CLUSTER", "MYID").Val().(string)
}

// begin returns the keys of the slot.
func (m *move) begin() []string {
	m.t.Helper()
	m.do(m.to, "CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.id(m.from))
	m.do(m.from, "CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.id(m.to))
	return m.from.ClusterGetKeysInSlot(m.t.Context(), m.slot, 1000).Val()
}

func (m *move) migrate(keys []string) {
	m.t.Helper()
	host, port, _ := net.SplitHostPort(m.target)
	args := []any{"MIGRATE", host, port, "", 0, 60_000, "KEYS"}
	for _, k := range keys {
		args = append(args, k)
	}
	m.do(m.from.WithTimeout(time.Minute), args...)
}

func (m *move) end() {
	m.t.Helper()
	for _, c := range []*driver.Client{m.to, m.from} {
		m.do(c, "CLUSTER", "SETSLOT", m.slot, "NODE", m.id(m.to))
	}
}
