// Package redis measures Semel on Redis against two plain commands, with the same driver on
// the same server (appendfsync always).
package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	driver "github.com/redis/go-redis/v9"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/payment"
	"github.com/semelgo/semel/bench/internal/usage"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/redis"
)

// callers is the number of callers at the same time.
const callers = 64

// Experiments returns the experiments on Redis.
func Experiments() []lab.Experiment {
	naive := goal.AtLeast("Redis, throughput of Do at 64 callers, against SET NX and SET without a fence", "x", 1.4, 2)
	run := func(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
		server, err := realtest.StartDurableRedis(ctx)
		if err != nil {
			return nil, err
		}
		l.Closing(server.Close)
		client := driver.NewClient(&driver.Options{Addr: strings.TrimPrefix(server.URL(), "redis://"), PoolSize: callers})
		l.Closing(client.Close)
		s, err := redis.New(client, redis.Options{})
		if err != nil {
			return nil, err
		}
		engine, err := semel.NewRunner(s, semel.Options{})
		if err != nil {
			return nil, err
		}
		l.Closing(func() error { return engine.Close(context.Background()) })
		c := contest.Contest{
			Name: "redis, callers: 64", Callers: callers, Server: usage.Tree(server.PID()),
			Sides: []contest.Side{{Name: "naive", Do: plain(client)}, {Name: "Do", Do: payment.Do(engine)}},
		}
		o, err := c.Run(ctx, l)
		if err != nil {
			return nil, err
		}
		return []goal.Finding{o.Faster(naive, "Do", "naive")}, nil
	}
	return []lab.Experiment{{Name: "redis", Rows: []goal.Row{naive}, Run: run}}
}

// plain claims and completes by two commands. A caller that stops for longer than the claim
// lasts overwrites the result of its successor.
func plain(client *driver.Client) func(context.Context, *contest.Caller) error {
	return func(ctx context.Context, c *contest.Caller) error {
		key := payment.Scope(c.N) + ":" + c.Key()
		claimed, err := client.SetNX(ctx, key, "", 24*time.Hour).Result()
		if err == nil && !claimed {
			err = errors.New("the key exists")
		}
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		if err := client.Set(ctx, key, []byte(payment.Result()), 24*time.Hour).Err(); err != nil {
			return fmt.Errorf("complete: %w", err)
		}
		return nil
	}
}
