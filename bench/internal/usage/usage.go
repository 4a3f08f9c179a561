// Package usage measures the processor time of this process, of the servers it
// measures, and of all other processes.
package usage

import (
	"fmt"
	"syscall"
	"time"
)

// Foreign is the share of the machine that other processes may use during a
// measurement; above it the measurement is repeated.
const Foreign = 0.12

// Server reports the processor time of some processes so far.
type Server func() (time.Duration, error)

// None is the Server of measurements without servers.
func None() (time.Duration, error) { return 0, nil }

// Mark is the used processor time at some moment.
type Mark struct {
	ask      Server
	at       time.Time
	client   time.Duration
	server   time.Duration
	busy     time.Duration // of all processors, by all processes
	capacity time.Duration // busy and idle
}

// Begin marks the current processor time. Reading that of other processes costs
// time itself, so it comes last here, and first in End.
func Begin(s Server) (Mark, error) {
	m := Mark{ask: s}
	if err := m.others(); err != nil {
		return Mark{}, err
	}
	return m, m.self()
}

// End returns the processor time from m to now.
func (m Mark) End() (Span, error) {
	now := Mark{ask: m.ask}
	if err := now.self(); err != nil {
		return Span{}, err
	}
	if err := now.others(); err != nil {
		return Span{}, err
	}
	return now.since(m), nil
}

func (m Mark) since(begin Mark) Span {
	s := Span{
		Elapsed: m.at.Sub(begin.at),
		Client:  m.client - begin.client,
		Server:  m.server - begin.server,
	}
	if all := m.capacity - begin.capacity; all > 0 {
		// The kernel counts the machine in ticks and processes in nanoseconds, so
		// the difference can be slightly negative.
		s.Foreign = max(0, float64(m.busy-begin.busy-s.Client-s.Server)/float64(all))
	}
	return s
}

func (m *Mark) self() error {
	m.at = time.Now()
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return fmt.Errorf("read own usage: %w", err)
	}
	m.client = time.Duration(own.Utime.Nano() + own.Stime.Nano())
	return nil
}

func (m *Mark) others() error {
	var err error
	if m.server, err = m.ask(); err != nil {
		return fmt.Errorf("read usage of the server: %w", err)
	}
	m.busy, m.capacity, err = machine()
	return err
}

// Span is the processor time between two marks.
type Span struct {
	Elapsed time.Duration
	// Client and Server are the processor time of this process and of the servers.
	Client, Server time.Duration
	// Foreign is the time of all other processes, as a share of all processors.
	Foreign float64
}

// Quiet reports whether other processes used little enough.
func (s Span) Quiet() bool { return s.Foreign <= Foreign }
