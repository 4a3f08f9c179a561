package realtest

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// Machine is a machine that a test makes up.
type Machine struct {
	Env       map[string]string
	Path      map[string]string // programs in the PATH
	Installed []string          // programs elsewhere
}

func (m Machine) machine() machine {
	return machine{
		getenv: func(name string) string { return m.Env[name] },
		lookPath: func(program string) (string, error) {
			if path, ok := m.Path[program]; ok {
				return path, nil
			}
			return "", errors.New("not in the PATH")
		},
		glob: func(pattern string) ([]string, error) {
			return slices.DeleteFunc(slices.Clone(m.Installed), func(path string) bool {
				ok, err := filepath.Match(pattern, path)
				return err != nil || !ok
			}), nil
		},
	}
}

// Need finds PostgreSQL on m for a test.
func (m Machine) Need(tb testing.TB) (url, program string) {
	tb.Helper()
	at := m.machine().need(tb, postgres())
	return at.url, at.program
}

// NeedRabbitMQ finds RabbitMQ on m for a test.
func (m Machine) NeedRabbitMQ(tb testing.TB) (url, program string) {
	tb.Helper()
	at := m.machine().need(tb, rabbitmq())
	return at.url, at.program
}

// BrokerHome is the directory of a broker of one's own.
func BrokerHome(b *Broker) string { return b.own.serverDir.dir }

// StartPostgresAt makes a new server and starts it at addr.
func StartPostgresAt(ctx context.Context, addr string) (inUse bool, err error) {
	return startAt(ctx, postgres(), newCluster, addr)
}

// StartRabbitMQAt makes a new server and starts it at addr.
func StartRabbitMQAt(ctx context.Context, addr string) (inUse bool, err error) {
	return startAt(ctx, rabbitmq(), newNode, addr)
}

// StartMariaDBAt makes a new server and starts it at addr.
func StartMariaDBAt(ctx context.Context, addr string) (inUse bool, err error) {
	return startAt(ctx, mariadb(), launchMariaDB, addr)
}

func startAt(ctx context.Context, e engine, with launcherFunc, addr string) (inUse bool, err error) {
	e.env = ""
	h, err := newServerDir(diskDir())
	if err != nil {
		return false, err
	}
	p := &instance{serverDir: h, launcher: with(thisMachine().find(e).program, nil)}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false, err
	}
	if p.port, err = strconv.Atoi(port); err != nil {
		return false, err
	}
	if err = p.launcher.prepare(ctx, h); err == nil {
		err = p.startOnce(ctx)
	}
	return errors.Is(err, errInUse), errors.Join(err, p.close())
}
