package etcd_test

import (
	"crypto/rand"
	"os"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/plainstore/servers"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/etcd"
	"github.com/semelgo/semel/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(realtest.Main(m)) }

func newStore(t testing.TB, client *clientv3.Client) *etcd.Store {
	t.Helper()
	s := check.Must(etcd.New(client, etcd.Options{Prefix: rand.Text()}))(t)
	return s
}

func TestContract(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "etcd")
	runContract(t, realtest.Etcd(t), nil, nil)
}

// TestContractOfACluster: two of three members can be stopped, and then nothing is confirmed.
// The members elect no other leader meanwhile, nor when the machine is slow: a new leader
// loses the requests of the old one.
func TestContractOfACluster(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	cluster := realtest.OwnEtcd(t, 3, "--heartbeat-interval=500", "--election-timeout=10000")
	runContract(t, cluster.Nodes[0], func() (restore func()) {
		for _, n := range cluster.Nodes[1:] {
			n.Pause()
		}
		return func() {
			for _, n := range cluster.Nodes[1:] {
				n.Resume()
			}
		}
	}, storetest.StoreCallParts())
}

// runContract runs the suite, or some parts of it, by connections through a proxy that loses
// replies.
func runContract(t *testing.T, member *realtest.EtcdServer, isolate func() (restore func()), parts []string) {
	t.Helper()
	proxy := realtest.NewHTTP2Proxy(t, member.Addr())
	client := check.Must(realtest.NewEtcdClient(proxy.URL(member.URL())))(t)
	t.Cleanup(func() { client.Close() })
	storetest.RunStore(t, func(t testing.TB) storetest.StoreSubject {
		return storetest.StoreSubject{
			Store: newStore(t, client), Isolate: isolate,
			Lose: func() func() bool {
				fault := proxy.EatReply(servers.EtcdWrites)
				return func() bool { return !fault.Disarm() }
			},
		}
	}, parts...)
}
