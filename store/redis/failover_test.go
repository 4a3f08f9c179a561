package redis_test

import (
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/redis"
)

// failovers are the ways in which a failover under Sentinel meets a claim. The replicas that
// are cut off are the first ones. A second caller claims after the failover.
var failovers = []struct {
	name       string
	options    redis.Options
	cut        int  // replicas that do not have the claim
	killFirst  bool // the replica that has the claim is lost together with the primary
	claimed    bool // the first caller is told that its claim is applied
	twoLeaders bool // and the second one too
}{
	{name: "LossIsAccepted", options: redis.Options{AcceptFailoverLoss: true}, cut: 2, claimed: true, twoLeaders: true},
	{name: "NoReplicaConfirms", options: redis.Options{Replicas: 2}, cut: 2},
	{
		name: "TheOnlyReplicaThatConfirmedIsLost", options: redis.Options{Replicas: 1, ReplicaTimeout: time.Minute, AcceptFailoverLoss: true},
		cut: 1, killFirst: true, claimed: true, twoLeaders: true,
	},
	{name: "OneReplicaDoesNotConfirm", options: redis.Options{Replicas: 2}, cut: 1},
	{name: "AllReplicasConfirm", options: patient(2), claimed: true},
}

// TestClaimsAfterAFailover: with all replicas confirming, a failover makes no second leader
// of an attempt, because a claim that the replicas do not have is not reported. Otherwise it
// makes one, and Capabilities has said so.
func TestClaimsAfterAFailover(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	for _, f := range failovers {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			group := realtest.RedisSentinel(t)
			s := newStore(t, group.Client(t), f.options)
			caps, err := s.Capabilities(t.Context())
			if survives := caps.Survives == store.Failover; err != nil || survives == f.options.AcceptFailoverLoss {
				t.Errorf("Survives = %v, %v", caps.Survives, err)
			}
			group.CutOff(t, group.Replicas[:f.cut]...)
			first, second := create("key", store.InProgress, 1), create("key", store.InProgress, 2)
			claimed, err := apply(t.Context(), s, first)
			if claimed != f.claimed || !claimed && !errors.Is(err, redis.ErrNotConfirmed) {
				t.Fatalf("the first claim = %v, %v, want applied: %v", claimed, err, f.claimed)
			}
			if f.killFirst {
				group.Replicas[1].Kill()
			}
			group.Primary.Kill()
			promoted := group.AwaitPromoted(t)
			after := newStore(t, promoted.Client(t), redis.Options{Prefix: s.Prefix(), AcceptFailoverLoss: true})
			leads, err := apply(t.Context(), after, second)
			if err != nil || (claimed && leads) != f.twoLeaders {
				t.Errorf("the first claim was applied: %v, and the second after the failover: %v, %v", claimed, leads, err)
			}
		})
	}
}

// TestFinalStateAfterAFailover: a caller does not read a final state that a failover takes
// back.
func TestFinalStateAfterAFailover(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	group := realtest.RedisSentinel(t)
	s := newStore(t, group.Client(t), patient(2))
	claim := create("key", store.InProgress, 1)
	mustApply(t, s, claim)
	group.CutOff(t, group.Replicas...)
	s.SetReplicaTimeout(time.Second)
	end := succeed(claim)
	for range 2 {
		if applied, err := apply(t.Context(), s, end); applied || !errors.Is(err, redis.ErrNotConfirmed) {
			t.Errorf("the end = %v, %v, want it not confirmed", applied, err)
		}
		if read, err := s.Get(t.Context(), []store.ID{end.To.ID}); !errors.Is(err, redis.ErrNotConfirmed) {
			t.Errorf("Get = %+v, %v, want it not confirmed", read, err)
		}
	}
	unsafe := newStore(t, group.Client(t), redis.Options{Prefix: s.Prefix(), AcceptFailoverLoss: true})
	if got := current(t, unsafe, end); got != end.To.Token {
		t.Errorf("without confirmation, Get shows %v, want the end that will be lost", got)
	}
	group.Primary.Kill()
	promoted := group.AwaitPromoted(t)
	after := newStore(t, promoted.Client(t), redis.Options{Prefix: s.Prefix(), AcceptFailoverLoss: true})
	if got := current(t, after, claim); got != claim.To.Token {
		t.Errorf("after the failover %v is current, want the claim", got)
	}
}
