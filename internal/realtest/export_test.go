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

// StartAt makes a new cluster and starts it at the port of s.
func StartAt(ctx context.Context, s *Server) (inUse bool, err error) {
	h, err := newHome()
	if err != nil {
		return false, err
	}
	at := thisMachine().find(engine{program: postgres().program, places: postgres().places})
	p := &instance{home: h, program: at.program, options: usual()}
	_, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		return false, err
	}
	if p.port, err = strconv.Atoi(port); err != nil {
		return false, err
	}
	if err = p.initialise(ctx); err == nil {
		err = p.startOnce(ctx)
	}
	return errors.Is(err, errInUse), errors.Join(err, p.close())
}
