package etcd_test

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/etcd"
	"github.com/semelgo/semel/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(realtest.Main(m)) }

func newStore(t testing.TB, client *clientv3.Client) *etcd.Store {
	t.Helper()
	s, err := etcd.New(client, etcd.Options{Prefix: rand.Text()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "etcd")
	client := realtest.OwnEtcd(t, 3).Client(t)
	storetest.RunStore(t, func(t testing.TB) storetest.StoreSubject {
		return storetest.StoreSubject{Store: newStore(t, client)}
	})
}

// TestSurvivesFollowsTheMembers: one member survives no failover.
func TestSurvivesFollowsTheMembers(t *testing.T) {
	t.Parallel()
	caps, err := newStore(t, realtest.OwnEtcd(t, 1).Client(t)).Capabilities(t.Context())
	if err != nil || caps.Survives != store.PowerLoss || !strings.Contains(caps.SurvivesBecause, "voting members") {
		t.Errorf("Survives = %v because %q, %v, want PowerLoss because of the members", caps.Survives, caps.SurvivesBecause, err)
	}
}
