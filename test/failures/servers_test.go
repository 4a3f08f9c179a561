package failures_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	driver "github.com/redis/go-redis/v9"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/plainstore/servers"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/redis"
)

// A caller that loses the reply of Redis to its claim is still the leader, and one that
// loses the reply to its outcome returns its success. Whether the client or the engine
// repeats the call makes no difference.
func TestRedisRepliesAreLost(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "redis")
	for name, retries := range map[string]int{"client repeats": 0, "engine repeats": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := servers.Redis(t)
			proxy := realtest.NewRedisProxy(t, at.Address)
			client := driver.NewClient(&driver.Options{Addr: proxy.Addr(), MaxRetries: retries})
			t.Cleanup(func() { client.Close() })
			s := check.Must(redis.New(client, redis.Options{Prefix: at.Prefix}))(t)
			w := newFixture(t, outsideOf(s), "wire")
			loseReplies(t, w, proxy)
			if n := w.seen.count(event.StoreError); n < 2*rounds && retries < 0 {
				t.Errorf("%d lost replies were seen, want %d", n, 2*rounds)
			}
		})
	}
}

func loseReplies(t *testing.T, w *fixture[noTx], proxy *realtest.Proxy) {
	t.Helper()
	op := semel.Define(w.op("outside"), w.operation(outside))
	for i := range rounds {
		for _, lost := range []string{"claim", "outcome"} {
			key := fmt.Sprint(lost, i)
			var fault *realtest.Fault
			if lost == "claim" {
				fault = proxy.EatReply(servers.RedisWrites)
			}
			for call := range 2 {
				v, replayed, err := do(t.Context(), w, w.runner, op.Call(semel.ScopeOf("ann"), key, "in"),
					func(_ context.Context, effect func(string) error) (string, error) {
						if lost == "outcome" {
							fault = proxy.EatReply(servers.RedisWrites)
						}
						return "done " + key, effect(key)
					})
				if v != "done "+key || replayed != (call == 1) || err != nil {
					t.Errorf("call %d of %s: %q, replayed %v, %v, want its success, then a replay", call, key, v, replayed, err)
				}
			}
			fault.Wait(t)
			w.wantEffects(t, key, 1)
		}
	}
}

// TestUnreachableServers checks the errors of calls while the server is down, and after the
// program has closed its client.
func TestUnreachableServers(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) (at servers.Place, kill func()){
		"redis": func(t *testing.T) (servers.Place, func()) {
			server := realtest.OwnRedis(t)
			return servers.Place{Engine: "redis", Address: server.Addr(), Prefix: "gone"}, server.Kill
		},
		"etcd": func(t *testing.T) (servers.Place, func()) {
			server := realtest.OwnEtcd(t, 1).Nodes[0]
			return servers.Place{Engine: "etcd", Address: server.URL(), Prefix: "gone"}, server.Kill
		},
	} {
		for _, how := range []string{"closed", "killed"} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				t.Attr("engine", name)
				at, cut := open(t)
				s, end, err := at.Open()
				check.Require(t, err)
				t.Cleanup(func() { _ = end() })
				task, direct := unreachableOperations()
				e := whenReachable(t, func() (semel.Runner, error) { return semel.NewRunner(s, unreachableOptions(task)) })
				if how == "closed" {
					cut = func() { _ = end() }
				}
				cut()
				allUnavailable(t, s, e, task, direct, map[string]func() error{"New": func() error {
					_, err := semel.NewRunner(s, unreachableOptions(task))
					return err
				}})
			})
		}
	}
}

// TestRule17KilledRedisLosesRecords kills a Redis that keeps its changes in memory. New
// rejects it by the name of the setting. A program that accepts the loss all the same gets
// an alarm, and after the kill its retry runs again. With the setting repaired the retry is
// answered from the record.
func TestRule17KilledRedisLosesRecords(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "redis")
	for _, appends := range []string{"no", "yes"} {
		server := realtest.OwnRedis(t, "appendonly "+appends)
		s := servers.Place{Engine: "redis", Address: server.Addr(), Prefix: "t"}.Store(t)
		alarm, runs, replayed := new(seen), 0, false
		o := semel.Options{Observer: alarm}
		if appends == "no" {
			mustReject(t, s, "appendonly is no")
			o.Survive = store.NoFailure
		}
		for range 2 {
			e, err := semel.NewRunner(s, o)
			check.Require(t, err)
			closeAtEnd(t, e)
			call := semel.Define("charge", semel.OperationOptions[string]{}).Call(semel.ScopeOf("ann"), "k", "in")
			if _, replayed, err = semel.Do(t.Context(), e, call, func(context.Context) (string, error) { runs++; return "charged", nil }); err != nil {
				t.Fatal(err)
			}
			server.Kill()
			server.Start(t)
		}
		if lost := appends == "no"; (runs == 2) != lost || replayed == lost || (alarm.count(event.NotDurable) > 0) != lost {
			t.Errorf("appendonly %s: %d runs, replayed %v, %d alarms; want a loss: %v", appends, runs, replayed, alarm.count(event.NotDurable), lost)
		}
	}
}

func mustReject(t *testing.T, s store.Store, because string) {
	t.Helper()
	_, err := semel.NewRunner(s, semel.Options{})
	if err == nil || !strings.Contains(err.Error(), because) || !strings.Contains(err.Error(), "store.NoFailure") {
		t.Errorf("NewRunner: %v, want it to reject the store: %s", err, because)
	}
}
