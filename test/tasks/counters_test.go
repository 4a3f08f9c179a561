//go:build unix

package tasks_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/semelgo/semel/event"
)

// counters counts a process's events, and writes the counts several times a second,
// so that a killed process has written most of them.
type counters struct {
	db      tables
	process string

	mu    sync.Mutex
	times map[string]int // not written yet; guarded by mu
}

func newCounters(db tables, process string) *counters {
	return &counters{db: db, process: process, times: make(map[string]int)}
}

// Observe counts the events of an engine.
func (m *counters) Observe(_ context.Context, e event.Event) { m.count(string(e.Kind)) }

func (m *counters) count(kind string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.times[kind]++
}

// run writes the counts until ctx ends, and then the last ones. Counts that the
// database had no time for are written with the next.
func (m *counters) run(ctx context.Context) error {
	tick := time.Tick(100 * time.Millisecond)
	for ctx.Err() == nil {
		_ = m.write(ctx)
		select {
		case <-tick:
		case <-ctx.Done():
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return retryWhileBusy(last, func() error { return m.write(last) })
}

// write writes the events since the last write. If it fails, they are written next
// time.
func (m *counters) write(ctx context.Context) error {
	m.mu.Lock()
	taken := m.times
	m.times = make(map[string]int)
	m.mu.Unlock()
	for kind, n := range taken {
		if _, err := m.db.ExecContext(ctx, insertMark, m.process, kind, n); err != nil {
			m.put(taken)
			return fmt.Errorf("write down the marks: %w", err)
		}
		delete(taken, kind)
	}
	return nil
}

func (m *counters) put(back map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for kind, n := range back {
		m.times[kind] += n
	}
}
