//go:build unix

package tasks_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
)

// nemesis kills and stops the processes of a test at random, and starts others in
// the place of those it has killed.
type nemesis struct {
	t       *testing.T
	worker  child // as each of them is told, but for its name
	running []*process
	stopped *process // nil: all go on
	started int
	kills   int64
	stops   int64
}

// newNemesis starts n workers.
func newNemesis(t *testing.T, worker child, n int) *nemesis {
	t.Helper()
	m := &nemesis{t: t, worker: worker}
	for range n {
		m.running = append(m.running, m.another())
	}
	for _, p := range m.running {
		p.await(t, "ready")
	}
	return m
}

// another starts one more worker.
func (m *nemesis) another() *process {
	m.started++
	c := m.worker
	c.Name = fmt.Sprint("worker-", m.started)
	return start(m.t, c)
}

// rage harms the workers until ctx ends: it kills one whenever kills tells, and,
// unless spared, stops one after the other for two leases or more. Then all go on.
func (m *nemesis) rage(ctx context.Context, kills <-chan time.Time, stops bool) {
	turn := time.NewTimer(lease)
	defer turn.Stop()
	for {
		select {
		case <-kills:
			m.kill()
		case <-turn.C:
			switch {
			case m.stopped != nil:
				m.resume()
				turn.Reset(rand.N(lease))
			case stops:
				m.stop()
				turn.Reset(2*lease + rand.N(lease))
			}
		case <-ctx.Done():
			m.resume()
			return
		}
	}
}

// kill kills one, as it stands.
func (m *nemesis) kill() {
	i := rand.IntN(len(m.running))
	p := m.running[i]
	p.kill()
	m.kills++
	if p == m.stopped {
		m.stopped = nil
	}
	m.running[i] = m.another()
}

func (m *nemesis) stop() {
	m.stopped = m.running[rand.IntN(len(m.running))]
	m.stopped.signal(m.t, syscall.SIGSTOP)
	m.stops++
}

// resume lets the one that is stopped go on.
func (m *nemesis) resume() {
	if m.stopped != nil {
		m.stopped.signal(m.t, syscall.SIGCONT)
		m.stopped = nil
	}
}

// end lets all workers stop in an orderly way.
func (m *nemesis) end() {
	endAll(m.t, m.running)
}
