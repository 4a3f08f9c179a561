//go:build unix

package tasks_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/semelgo/semel"
)

// marks counts what a process sees, and writes it down a few times a second: what
// is killed has said most of it.
type marks struct {
	db      *sql.DB
	process string

	mu    sync.Mutex
	times map[string]int // not written down yet; guarded by mu
}

func newMarks(db *sql.DB, process string) *marks {
	return &marks{db: db, process: process, times: make(map[string]int)}
}

// Observe counts the events of an engine.
func (m *marks) Observe(_ context.Context, e semel.Event) { m.count(string(e.Kind)) }

func (m *marks) count(kind string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.times[kind]++
}

// run writes the counts down until ctx ends, and then the last of them. What the
// database had no time for is written with the next.
func (m *marks) run(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		_ = m.write(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	for {
		err := m.write(last)
		if err == nil || last.Err() != nil {
			return err
		}
		<-tick.C
	}
}

// write writes down what has been counted since the last time. What it could not
// write counts the next time.
func (m *marks) write(ctx context.Context) error {
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

func (m *marks) put(back map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for kind, n := range back {
		m.times[kind] += n
	}
}
