package realtest

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/semelgo/semel/internal/check"
)

// etcdEngine is etcd, tried with 3.4. SEMEL_TEST_ETCD_BIN is the directory of another etcd.
func etcdEngine() engine {
	return engine{
		name: "etcd", envDir: "SEMEL_TEST_ETCD_BIN", program: "etcd",
		places: []string{"/usr/bin", "/opt/homebrew/bin"}, packages: "etcd-server",
	}
}

var sharedEtcd shared //nolint:gochecknoglobals // one server for all tests of a binary is its purpose

// Etcd gives the test the cluster of one member that all tests of this binary share. The test
// may not kill, stop or empty it; see [OwnEtcd]. Each test uses keys of its own. It does not
// wait for the disk.
func Etcd(tb testing.TB) *EtcdServer {
	tb.Helper()
	s := &EtcdServer{sharedEtcd.handle(tb, etcdEngine(), func(program string, _ []string) launcher {
		return &clusterNode{program: program, name: "n0", flags: []string{"--unsafe-no-fsync", "--heartbeat-interval=20", "--election-timeout=200"}}
	})}
	awaitEtcd(tb, s)
	return s
}

// awaitEtcd waits until the cluster of the members has a leader.
func awaitEtcd(tb testing.TB, members ...*EtcdServer) {
	tb.Helper()
	for _, m := range members {
		client, err := NewEtcdClient(m.URL())
		check.Require(tb, err, "connect to etcd")
		Poll(tb, "a leader of etcd", func() bool {
			ctx, cancel := context.WithTimeout(tb.Context(), time.Second)
			defer cancel()
			_, err := client.Get(ctx, "leader") // a linearizable read
			return err == nil
		})
		client.Close()
	}
}

// NewEtcdClient returns a client that logs nothing.
func NewEtcdClient(endpoints ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()}) //nolint:wrapcheck // the callers wrap it
}

// EtcdCluster is an etcd cluster for one test.
type EtcdCluster struct{ Nodes []*EtcdServer }

// EtcdServer is a member of a cluster. Its URL is http://host:port.
type EtcdServer struct{ handle }

// OwnEtcd starts a cluster of n members for this test alone, which ends with the test. It
// has a leader when OwnEtcd returns. Each member has the flags.
func OwnEtcd(tb testing.TB, n int, flags ...string) *EtcdCluster {
	tb.Helper()
	nodes := check.Must(newEtcdNodes(tb.Context(), n))(tb)
	c := &EtcdCluster{}
	for _, m := range nodes {
		m.flags = flags
		c.Nodes = append(c.Nodes, &EtcdServer{ownHandle(tb, etcdEngine(), m.launcher, nil)})
	}
	awaitEtcd(tb, c.Nodes...)
	return c
}

// Client returns a client of all members, which is closed at the end of the test.
func (c *EtcdCluster) Client(tb testing.TB) *clientv3.Client {
	tb.Helper()
	var endpoints []string
	for _, n := range c.Nodes {
		endpoints = append(endpoints, n.URL())
	}
	client, err := NewEtcdClient(endpoints...)
	check.Require(tb, err, "connect to etcd")
	tb.Cleanup(func() { client.Close() })
	return client
}

// Leader returns the member that leads the others.
func (c *EtcdCluster) Leader(tb testing.TB) (leader *EtcdServer) {
	tb.Helper()
	client := c.Client(tb)
	Poll(tb, "a leader of etcd", func() bool {
		for _, n := range c.Nodes {
			ctx, cancel := context.WithTimeout(tb.Context(), time.Second)
			status, err := client.Status(ctx, n.URL())
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				leader = n
				return true
			}
		}
		return false
	})
	return leader
}

// clusterNode describes how a member is started.
type clusterNode struct {
	program, name, peer, cluster string
	flags                        []string
}

// newEtcdNodes returns the members of a new cluster.
func newEtcdNodes(ctx context.Context, n int) ([]*clusterNode, error) {
	nodes := make([]*clusterNode, n)
	var all []string
	for i := range nodes {
		nodes[i] = &clusterNode{name: fmt.Sprint("n", i)}
		if err := nodes[i].choosePeer(ctx); err != nil {
			return nil, err
		}
		all = append(all, nodes[i].cluster)
	}
	for _, node := range nodes {
		node.cluster = strings.Join(all, ",")
	}
	return nodes, nil
}

// choosePeer chooses the address for other members, and the cluster of this one alone.
func (m *clusterNode) choosePeer(ctx context.Context) error {
	port, err := freePort(ctx)
	m.peer = fmt.Sprint("http://127.0.0.1:", port)
	m.cluster = m.name + "=" + m.peer
	return err
}

func (m *clusterNode) launcher(program string, _ []string) launcher {
	m.program = program
	return m
}

func (m *clusterNode) prepare(ctx context.Context, _ *serverDir) error {
	if m.peer == "" {
		return m.choosePeer(ctx)
	}
	return nil
}

// launch returns before the member serves, because that takes a majority of the members.
func (m *clusterNode) launch(ctx context.Context, p *instance) (*process, error) {
	args := append([]string{
		"--name", m.name, "--data-dir", p.serverDir.file("data"),
		"--listen-client-urls", p.url(), "--advertise-client-urls", p.url(),
		"--listen-peer-urls", m.peer, "--initial-advertise-peer-urls", m.peer,
		"--initial-cluster", m.cluster, "--initial-cluster-state", "new", "--log-level", "error",
	}, m.flags...)
	cmd := exec.Command(m.program, args...) //nolint:noctx // it outlives the context that bounds its start
	cmd.Dir = p.serverDir.dir
	return startUntil(ctx, cmd, p.serverDir.as, p.log(), listens(p.port))
}

func (m *clusterNode) url(addr string) string { return "http://" + addr }
