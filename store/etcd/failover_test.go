package etcd_test

import (
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/plainstore/servers"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/etcd"
)

// TestLeadersAreKilled one after another, while callers use all members. The others elect a
// new leader, and the killed member comes back. No answer is lost, and no key runs twice.
func TestLeadersAreKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	cluster := realtest.OwnEtcd(t, 3)
	client := cluster.Client(t)
	l := servers.StartLoad(t, func() store.Store { return mustNew(t, client, etcd.Options{Prefix: "load"}) })
	for range 3 {
		l.AwaitAnswers(200)
		leader := cluster.Leader(t)
		leader.Kill()
		l.AwaitAnswers(200) // of a new leader
		leader.Start(t)
	}
	l.AwaitAnswers(200)
	l.End()
}

// TestSurvivesFollowsTheMembers: three members survive the loss of one. One and two do not. A
// learner does not vote.
func TestSurvivesFollowsTheMembers(t *testing.T) {
	t.Parallel()
	single := check.Must(realtest.NewEtcdClient(realtest.Etcd(t).URL()))(t)
	t.Cleanup(func() { single.Close() })
	wantSurvives(t, newStore(t, single), store.PowerLoss, "the number of voting members of the cluster is 1")
	if testing.Short() {
		t.Skip("make test-full also runs it with three members")
	}
	cluster := realtest.OwnEtcd(t, 3)
	leader := cluster.Leader(t)
	client := check.Must(realtest.NewEtcdClient(leader.URL()))(t) // each member answers with the list that it has applied itself
	t.Cleanup(func() { client.Close() })
	s := newStore(t, client)
	wantSurvives(t, s, store.Failover, "")
	members := check.Must(client.MemberList(t.Context()))(t)
	for _, m := range members.Members {
		if m.ClientURLs[0] != leader.URL() {
			realtest.Poll(t, "a smaller cluster", func() bool {
				_, _ = client.MemberRemove(t.Context(), m.ID) // it may be applied although its reply is lost
				of, err := client.MemberList(t.Context())
				return err == nil && len(of.Members) == 2
			})
			break
		}
	}
	wantSurvives(t, s, store.PowerLoss, "the number of voting members of the cluster is 2")
	realtest.Poll(t, "a learner", func() bool { // the cluster refuses it for a moment
		_, _ = client.MemberAddAsLearner(t.Context(), []string{"http://127.0.0.1:1"})
		of, err := client.MemberList(t.Context())
		return err == nil && len(of.Members) == 3
	})
	wantSurvives(t, s, store.PowerLoss, "the number of voting members of the cluster is 2")
}

func wantSurvives(t *testing.T, s *etcd.Store, want store.Failure, because string) {
	t.Helper()
	caps, err := s.Capabilities(t.Context())
	if err != nil || caps.Survives != want || !strings.Contains(caps.SurvivesBecause, because) {
		t.Errorf("Survives = %v because %q, %v, want %v because %q", caps.Survives, caps.SurvivesBecause, err, want, because)
	}
	_, err = semel.NewRunner(s, semel.Options{Survive: store.Failover})
	if rejected := want < store.Failover; (err != nil) != rejected || rejected && !strings.Contains(err.Error(), because) {
		t.Errorf("NewRunner = %v, want it rejected: %v", err, rejected)
	}
}
