package doctest_test

import (
	goredis "github.com/redis/go-redis/v9"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store/redis"
)

// redisFragment is the fragment of docs/stores.md.
func redisFragment() error {
	client := goredis.NewClient(&goredis.Options{Addr: "localhost:6379"})
	s, err := redis.New(client, redis.Options{Prefix: "payments"})
	if err != nil {
		return err
	}
	runner, err := semel.NewRunner(s, semel.Options{})
	if err != nil {
		return err
	}
	return use(runner)
}

func use(semel.Runner) error { return nil }

var _ = redisFragment // it is compiled, not run
