package rivals

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/usage"
)

// redisServer is a Redis server of the experiment.
type redisServer struct {
	addr   string
	client *redis.Client
	usage  usage.Server
}

// startRedis starts a Redis server with an append-only file.
func startRedis(ctx context.Context, l *lab.Lab) (*redisServer, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("there is no redis-server on this machine; on Debian: apt-get install redis-server")
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(l.Dir(), "redis")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cmd := exec.CommandContext(ctx, program, "--port", port, "--bind", "127.0.0.1", "--dir", dir,
		"--save", "", "--appendonly", "yes")
	ended, err := startUnder(cmd)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	s := &redisServer{addr: "127.0.0.1:" + port, usage: usage.Tree(cmd.Process.Pid)}
	s.client = redis.NewClient(&redis.Options{Addr: s.addr})
	l.Closing(func() error {
		err := s.client.Close()
		cancel()
		<-ended
		return err
	})
	return s, s.ready(ctx)
}

// startUnder starts a server that ends with this process, even if this process is
// killed. The kernel ends it together with the thread that started it, so that
// thread waits for the server's end.
func startUnder(cmd *exec.Cmd) (ended <-chan struct{}, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, over := make(chan error), make(chan struct{})
	go func() {
		defer close(over)
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it was killed
		}
	}()
	return over, <-started
}

func freePort(ctx context.Context) (string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a port: %w", err)
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port), nil
}

// ready waits until the server responds.
func (s *redisServer) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := s.client.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for redis-server: %w", err)
		}
	}
}
