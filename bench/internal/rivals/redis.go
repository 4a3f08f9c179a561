package rivals

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/usage"
	"github.com/semelgo/semel/internal/realtest"
)

// redisServer is a Redis server of the experiment.
type redisServer struct {
	addr   string
	client *redis.Client
	usage  usage.Server
}

// startRedis starts a Redis server with an append-only file.
func startRedis(ctx context.Context, l *lab.Lab) (*redisServer, error) {
	server, err := realtest.StartDurableRedis(ctx)
	if err != nil {
		return nil, err
	}
	l.Closing(server.Close)
	s := &redisServer{addr: strings.TrimPrefix(server.URL(), "redis://"), usage: usage.Tree(server.PID())}
	s.client = redis.NewClient(&redis.Options{Addr: s.addr})
	l.Closing(s.client.Close)
	return s, nil
}

// empty removes everything, and sets appendfsync.
func (s *redisServer) empty(ctx context.Context, sync string) error {
	if err := s.client.FlushAll(ctx).Err(); err != nil {
		return fmt.Errorf("empty Redis: %w", err)
	}
	if err := s.client.ConfigSet(ctx, "appendfsync", sync).Err(); err != nil {
		return fmt.Errorf("configure Redis: %w", err)
	}
	return nil
}
