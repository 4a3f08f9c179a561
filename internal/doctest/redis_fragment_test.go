package doctest_test

import (
	"context"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/redis"
)

// onRedis contains the fragment of docs/stores.md, and runs the operation "greet" twice.
func onRedis(ctx context.Context, addr string) error {
	client := goredis.NewClient(&goredis.Options{Addr: addr})
	s, err := redis.New(client, redis.Options{Prefix: "payments"})
	if err != nil {
		return err
	}
	runner, err := semel.NewRunner(s, semel.Options{})
	if err != nil {
		return err
	}
	greet := semel.Define("greet", semel.OperationOptions[string]{})
	for range 2 {
		_, _, err = semel.Do(ctx, runner, greet.Call(semel.Shared(), "k", "in"), func(context.Context) (string, error) { return "hello", nil })
		if err != nil {
			return err
		}
	}
	return runner.Close(ctx)
}

func TestRedisFragmentOfDocsRuns(t *testing.T) {
	t.Attr("engine", "redis")
	s := realtest.OwnRedis(t, "appendonly yes", "appendfsync always")
	check.NoError(t, onRedis(t.Context(), s.Addr()))
}
