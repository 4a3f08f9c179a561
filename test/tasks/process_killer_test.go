//go:build unix

package tasks_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"
)

// processKiller kills and stops the processes of a test at random, and starts new
// ones for those that it has killed.
type processKiller struct {
	t       *testing.T
	worker  child // configuration of each worker, without its name
	running []*process
	stopped *process // nil: none is stopped
	started int
	kills   int64
	stops   int64
}

// newProcessKiller starts n workers.
func newProcessKiller(t *testing.T, worker child, n int) *processKiller {
	t.Helper()
	m := &processKiller{t: t, worker: worker}
	for range n {
		m.running = append(m.running, m.another())
	}
	for _, p := range m.running {
		p.Await(t, "ready")
	}
	return m
}

// another starts one more worker.
func (m *processKiller) another() *process {
	m.started++
	c := m.worker
	c.Name = fmt.Sprint("worker-", m.started)
	return start(m.t, c)
}

// holderOf returns the index of the worker that has reported that it holds a task, or -1.
func (m *processKiller) holderOf(task string) int {
	return slices.IndexFunc(m.running, func(p *process) bool { return p.Count(holds, " "+task) > 0 })
}

// whileStopped stops the processes while fn runs.
func (m *processKiller) whileStopped(processes []*process, fn func()) {
	for _, p := range processes {
		p.Signal(m.t, syscall.SIGSTOP)
	}
	m.stops++
	fn()
	for _, p := range processes {
		p.Signal(m.t, syscall.SIGCONT)
	}
}

// killAndStop disturbs the workers until ctx ends: it kills one at each tick of
// kills and, if stops is set, stops one after another for two leases or more, the first one
// at once. Then all continue.
func (m *processKiller) killAndStop(ctx context.Context, kills <-chan time.Time, stops bool) {
	if stops {
		m.stop()
	}
	turn := time.NewTimer(2 * lease)
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

// kill kills one worker, in any state.
func (m *processKiller) kill() { m.replace(rand.IntN(len(m.running))) }

// replace kills the i-th worker and starts another one.
func (m *processKiller) replace(i int) {
	p := m.running[i]
	p.Kill()
	m.kills++
	if p == m.stopped {
		m.stopped = nil
	}
	m.running[i] = m.another()
}

func (m *processKiller) stop() {
	m.stopped = m.running[rand.IntN(len(m.running))]
	m.stopped.Signal(m.t, syscall.SIGSTOP)
	m.stops++
}

// resume continues the stopped worker.
func (m *processKiller) resume() {
	if m.stopped != nil {
		m.stopped.Signal(m.t, syscall.SIGCONT)
		m.stopped = nil
	}
}

// end stops all workers in an orderly way.
func (m *processKiller) end() {
	endAll(m.t, m.running)
}
