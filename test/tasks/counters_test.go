//go:build unix

package tasks_test

import (
	"context"
	"crypto/rand"
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

	unwritten []mark // in order; a write that failed may have been applied

	mu    sync.Mutex
	times map[string]int // since the last write; guarded by mu
}

// mark is how often a process had a kind of event since its last write. Its ID tells two
// writes of one mark from two marks.
type mark struct {
	id, kind string
	times    int
}

func newCounters(db tables, process string) *counters {
	return &counters{db: db, process: process, times: make(map[string]int)}
}

// Observe counts the events of an engine. It reports a database that does not answer at once,
// because the counts cannot be written then.
func (m *counters) Observe(_ context.Context, e event.Event) {
	m.count(string(e.Kind))
	if e.Kind == event.StoreError {
		report(string(e.Kind))
	}
}

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

// write writes the events since the last write, and the marks whose write failed.
func (m *counters) write(ctx context.Context) error {
	m.mu.Lock()
	for kind, n := range m.times {
		m.unwritten = append(m.unwritten, mark{rand.Text(), kind, n})
	}
	clear(m.times)
	m.mu.Unlock()
	for len(m.unwritten) > 0 {
		next := m.unwritten[0]
		if _, err := m.db.ExecContext(ctx, insertMark, next.id, m.process, next.kind, next.times); err != nil {
			return fmt.Errorf("write down the marks: %w", err)
		}
		m.unwritten = m.unwritten[1:]
	}
	return nil
}
