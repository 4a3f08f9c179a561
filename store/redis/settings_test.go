package redis_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	driver "github.com/redis/go-redis/v9"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/redis"
)

// TestSurvivesFollowsTheSettings: the settings are changed on a running server.
func TestSurvivesFollowsTheSettings(t *testing.T) {
	t.Parallel()
	server := realtest.OwnRedis(t)
	c := server.Client(t)
	s := newStore(t, c, redis.Options{})
	for _, set := range []struct {
		name, value, back string
		survives          store.Failure
		because           string
	}{
		{"appendfsync", "everysec", "always", store.ProcessEnd, "appendfsync is everysec"},
		{"appendfsync", "no", "always", store.ProcessEnd, "appendfsync is no"},
		{"no-appendfsync-on-rewrite", "yes", "no", store.ProcessEnd, "no-appendfsync-on-rewrite is yes"},
		{"appendonly", "no", "yes", store.NoFailure, "appendonly is no"},
		{"maxmemory", "100mb", "0", store.PowerLoss, "Options.Replicas is 0"},
		{"maxmemory-policy", "allkeys-lru", "noeviction", store.PowerLoss, "Options.Replicas is 0"}, // without maxmemory
	} {
		mustConfig(t, c, set.name, set.value)
		caps, err := s.Capabilities(t.Context())
		if err != nil || caps.Survives != set.survives || !strings.Contains(caps.SurvivesBecause, set.because) {
			t.Errorf("%s %s: %v because %q, %v, want %v because %q",
				set.name, set.value, caps.Survives, caps.SurvivesBecause, err, set.survives, set.because)
		}
		_, err = semel.NewRunner(s, semel.Options{})
		if rejected := set.survives < store.PowerLoss; (err != nil) != rejected || rejected && !strings.Contains(err.Error(), set.because) {
			t.Errorf("%s %s: NewRunner = %v, want it rejected: %v", set.name, set.value, err, rejected)
		}
		mustConfig(t, c, set.name, set.back)
	}
}

// TestLoadingServerIsUnavailable: while a server loads its file after a start, it says that it
// does not append to the file. The store reports that it loads, and no loss of records.
func TestLoadingServerIsUnavailable(t *testing.T) {
	t.Parallel()
	server := realtest.OwnRedis(t, "key-load-delay 100") // in microseconds
	c := server.Client(t)
	check.Must(c.Pipelined(t.Context(), func(p driver.Pipeliner) error {
		for i := range 5 * 1024 { // while it loads, a server replies after each 1,024 commands
			p.Set(t.Context(), fmt.Sprint("key-", i), "v", 0)
		}
		return nil
	}))(t)
	s := newStore(t, c, redis.Options{})
	loading, lossy := 0, 0
	realtest.Poll(t, "a call while the server loads", func() bool {
		server.Kill()
		ctx, started := context.WithCancel(t.Context())
		var reading sync.WaitGroup
		reading.Go(func() {
			_ = realtest.Retry(ctx, func() bool {
				caps, err := s.Capabilities(ctx)
				if err != nil && strings.Contains(err.Error(), "the server loads its data") {
					loading++
				}
				if err == nil && caps.Survives < store.PowerLoss {
					lossy++
				}
				return false
			})
		})
		server.Start(t)
		started()
		reading.Wait()
		return loading > 0
	})
	check.Equal(t, lossy, 0, "times records were said to be lost")
}

func mustConfig(t testing.TB, c *driver.Client, name, value string) {
	t.Helper()
	check.Require(t, c.ConfigSet(t.Context(), name, value).Err(), "CONFIG SET %s %s", name, value)
}

// TestServersThatCannotKeepRecords: such servers are rejected by name, also if a loss is accepted.
func TestServersThatCannotKeepRecords(t *testing.T) {
	t.Parallel()
	evicts := realtest.OwnRedis(t, "maxmemory 100mb", "maxmemory-policy volatile-lru")
	group := realtest.RedisReplicas(t, 1)
	node := realtest.OwnRedis(t, "cluster-enabled yes")
	for because, server := range map[string]*realtest.RedisServer{
		"maxmemory-policy is volatile-lru": evicts, "the role of the server is slave": group.Replicas[0], "cluster_enabled is 1": node,
	} {
		_, err := newStore(t, server.Client(t), redis.Options{AcceptFailoverLoss: true}).Capabilities(t.Context())
		if err == nil || !strings.Contains(err.Error(), because) {
			t.Errorf("Capabilities = %v, want an error with %q", err, because)
		}
	}
}

// TestReplicasNeedAnOption: a store without Options.Replicas is rejected on a primary with
// replicas, unless the loss is accepted by name.
func TestReplicasNeedAnOption(t *testing.T) {
	t.Parallel()
	group := realtest.RedisReplicas(t, 2)
	c := group.Primary.Client(t)
	for _, w := range []struct {
		options  redis.Options
		survives store.Failure
	}{
		{redis.Options{}, store.NoFailure},
		{redis.Options{Replicas: 1}, store.NoFailure},
		{redis.Options{AcceptFailoverLoss: true}, store.PowerLoss},
		{redis.Options{Replicas: 2}, store.Failover},
		{redis.Options{Replicas: 3, ReplicaTimeout: 1}, 0},
	} {
		s, err := redis.New(c, w.options)
		if w.survives == 0 {
			check.Fails(t, err, "%+v: New", w.options)
			continue
		}
		check.Require(t, err)
		caps, err := s.Capabilities(t.Context())
		named := strings.Contains(caps.SurvivesBecause, "AcceptFailoverLoss")
		if err != nil || caps.Survives != w.survives || named != (w.survives == store.NoFailure) {
			t.Errorf("%+v: Survives = %v because %q, %v, want %v", w.options, caps.Survives, caps.SurvivesBecause, err, w.survives)
		}
	}
}

// TestForbiddenConfig: where CONFIG GET is forbidden, appendfsync is unknown. The other
// rights are those that the documentation of the package names.
func TestForbiddenConfig(t *testing.T) {
	t.Parallel()
	server := realtest.OwnRedis(t)
	admin := server.Client(t)
	rights := strings.Fields(`on >password resetkeys ~semel:* resetchannels -@all
		+fcall +fcall_ro +function|load +wait +info +ping +hello +client|setname +cluster|slots
		+time +get +mget +getrange +set +mset +setrange +del +zadd +zrem +zrangebyscore +zrangebylex +sadd +srem +smembers +lrange +rpush`)
	args := []any{"ACL", "SETUSER", "semel"}
	for _, right := range rights {
		args = append(args, right)
	}
	check.Require(t, admin.Do(t.Context(), args...).Err())
	c := driver.NewClient(&driver.Options{Addr: server.Addr(), Username: "semel", Password: "password"})
	t.Cleanup(func() { c.Close() })
	s, err := redis.New(c, redis.Options{})
	check.Require(t, err)
	caps, err := s.Capabilities(t.Context())
	if err != nil || caps.Survives != store.ProcessEnd || !strings.Contains(caps.SurvivesBecause, "CONFIG GET") {
		t.Errorf("Survives = %v because %q, %v, want ProcessEnd because of CONFIG GET", caps.Survives, caps.SurvivesBecause, err)
	}
	useAll(t, s)
	stranger := newStore(t, c, redis.Options{Prefix: "other"})
	if _, err := stranger.Capabilities(t.Context()); err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("a store with keys of another application: %v, want NOPERM", err)
	}
}

// useAll uses each function of the store.
func useAll(t testing.TB, s *redis.Store) {
	t.Helper()
	ctx := t.Context()
	waits, claim := create("waits", store.Pending, 1), create("key", store.InProgress, 1)
	waits.To.Due = 0
	mustApply(t, s, waits)
	mustApply(t, s, claim)
	beat := claim
	beat.If = claim.To.Token
	mustApply(t, s, beat)
	end := succeed(claim)
	end.To.Expire = -1
	if result, err := s.SwapNoted(ctx, end, store.Note{Actor: "ann"}); err != nil || !result.Applied(end) {
		t.Errorf("SwapNoted = %+v, %v", result, err)
	}
	if notes, err := s.Notes(ctx, end.To.ID); err != nil || len(notes) != 1 {
		t.Errorf("Notes = %v, %v", notes, err)
	}
	d := store.Dequeue{Operation: "test", Limit: 1, Owner: 7}
	for _, d.Reread = range []bool{false, true} {
		if claims, err := s.Dequeue(ctx, d); err != nil || len(claims) != 1 {
			t.Errorf("Dequeue = %v, %v", claims, err)
		}
	}
	for _, due := range []bool{false, true} {
		if _, err := s.Scan(ctx, store.Query{Due: due}); err != nil {
			t.Errorf("Scan: %v", err)
		}
	}
	check.Result(s.Purge(ctx, 10))(t, 1, "Purge")
}
