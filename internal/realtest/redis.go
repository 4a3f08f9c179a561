package realtest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// redisEngine is Redis, tried with 7.0. SEMEL_TEST_REDIS_BIN is the directory of another
// redis-server, such as that of Valkey.
func redisEngine() engine {
	return engine{
		name: "redis", envDir: "SEMEL_TEST_REDIS_BIN", program: "redis-server",
		places: []string{"/usr/bin", "/opt/homebrew/bin"}, packages: "redis-server",
	}
}

var sharedRedis shared //nolint:gochecknoglobals // one server for all tests of a binary is its purpose

// Redis gives the test the server that all tests of this binary share. The test may not
// kill, stop or empty it; see [OwnRedis]. Each test uses keys of its own.
func Redis(tb testing.TB) *RedisServer {
	tb.Helper()
	return &RedisServer{sharedRedis.handle(tb, redisEngine(), launchRedis)}
}

// OwnRedis starts a server for this test alone, which the test may kill, stop and pause, and
// which ends with the test. Settings are "name value", as in a redis.conf; they win over
// those of the package. Without settings each change is on disk before it is confirmed.
func OwnRedis(tb testing.TB, settings ...string) *RedisServer {
	tb.Helper()
	return &RedisServer{ownHandle(tb, redisEngine(), launchRedis, settings)}
}

// RedisServer is a Redis that answers on its address. Its URL is redis://host:port.
type RedisServer struct{ handle }

// Client returns a client of the server, which is closed at the end of the test.
func (s *RedisServer) Client(tb testing.TB) *redis.Client {
	tb.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr()})
	tb.Cleanup(func() { c.Close() })
	return c
}

// redisServer describes how a Redis, or a Sentinel, is started.
type redisServer struct {
	program  string
	settings []string // lines of its configuration file
	sentinel bool
}

// launchRedis: replicas begin to follow their primary without a delay.
func launchRedis(program string, settings []string) launcher {
	return &redisServer{program: program, settings: append([]string{
		`save ""`, "appendonly yes", "appendfsync always", "repl-diskless-sync-delay 0", "repl-ping-replica-period 1",
	}, settings...)}
}

func launchSentinel(program string, settings []string) launcher {
	return &redisServer{program: program, settings: settings, sentinel: true}
}

func (r *redisServer) prepare(context.Context, *serverDir) error { return nil }

// launch writes the configuration file anew, because a server writes into it too.
func (r *redisServer) launch(ctx context.Context, p *instance) (*process, error) {
	h := p.serverDir
	lines := append([]string{
		"port " + strconv.Itoa(p.port), "bind 127.0.0.1", "dir " + h.dir,
		"set-proc-title no", // the name of the directory stays on the command line
	}, r.settings...)
	if err := h.write("redis.conf", strings.Join(lines, "\n")+"\n"); err != nil {
		return nil, err
	}
	args := []string{h.file("redis.conf")}
	if r.sentinel {
		args = append(args, "--sentinel")
	}
	cmd := exec.Command(r.program, args...) //nolint:noctx // it outlives the context that bounds its start
	cmd.Dir = h.dir
	return startUntil(ctx, cmd, h.as, p.log(), speaksRedis(p.addr(), h.file("redis.conf")))
}

func (r *redisServer) url(addr string) string { return "redis://" + addr }

// speaksRedis is the probe of a server by its configuration file.
func speaksRedis(addr, config string) readinessProbe {
	return readinessProbe{want: config, ask: func(ctx context.Context) (string, error) {
		c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
		defer c.Close()
		info, err := c.Info(ctx, "server", "persistence").Result()
		if err != nil {
			return "", fmt.Errorf("ask which server it is: %w", err)
		}
		if strings.Contains(info, "\nloading:1\r") {
			return "", errors.New("the server loads its data")
		}
		_, file, _ := strings.Cut(info, "config_file:")
		file, _, _ = strings.Cut(file, "\r\n")
		return file, nil
	}}
}
