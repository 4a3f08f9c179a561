package realtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// TestRedisKeepsWhatItConfirmed when it is killed and started again.
func TestRedisKeepsWhatItConfirmed(t *testing.T) {
	t.Parallel()
	s := realtest.OwnRedis(t, "maxmemory 50mb")
	c := s.Client(t)
	check.Require(t, c.Set(t.Context(), "kept", "yes", 0).Err())
	s.Kill()
	check.Fails(t, c.Get(t.Context(), "kept").Err(), "the killed server still answers")
	s.Start(t)
	if got := c.Get(t.Context(), "kept"); got.Val() != "yes" {
		t.Errorf("after the start: %v", got)
	}
	check.Equal(t, c.ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"], "52428800", "maxmemory")
}

// TestReplyOfRedisIsDroppedOnce: the server executes the request, the client does not learn
// of it, and the next client does. It is so within a pipeline, too.
func TestReplyOfRedisIsDroppedOnce(t *testing.T) {
	t.Parallel()
	s := realtest.OwnRedis(t)
	for _, protocol := range []int{2, 3} {
		key := fmt.Sprint("a", protocol)
		p := realtest.NewRedisProxy(t, s.Addr())
		c := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1, Protocol: protocol})
		t.Cleanup(func() { c.Close() })
		large := strings.Repeat("x", 1<<20)
		check.Require(t, c.HSet(t.Context(), "hash", "large", large).Err())
		fault := p.EatReply(realtest.SQL("incr " + key))
		pipe := c.Pipeline()
		first, lost := pipe.HGetAll(t.Context(), "hash"), pipe.Incr(t.Context(), key)
		if _, err := pipe.Exec(t.Context()); err == nil || lost.Err() == nil {
			t.Errorf("RESP%d: the pipeline = %v, want a lost reply", protocol, err)
		}
		if first.Val()["large"] != large {
			t.Errorf("RESP%d: the reply before the lost one is lost too: %v", protocol, first.Err())
		}
		fault.Wait(t)
		check.Result(c.Incr(t.Context(), key).Result())(t, 2, "RESP%d: the second INCR", protocol)
	}
}
