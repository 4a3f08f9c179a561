// Package usage tells who has used the processors: this process, the servers it
// measures, and everybody else.
package usage

import (
	"fmt"
	"syscall"
	"time"
)

// Foreign is the share of the machine that others may use while something is
// measured; above it the measurement is made again.
const Foreign = 0.12

// Server tells how much of the processors some processes have used so far.
type Server func() (time.Duration, error)

// None is no server: all is done in this process.
func None() (time.Duration, error) { return 0, nil }

// Mark is how much everybody had used at some time.
type Mark struct {
	ask      Server
	at       time.Time
	client   time.Duration
	server   time.Duration
	busy     time.Duration // of all processors, by anybody
	capacity time.Duration // busy and idle
}

// Begin marks what was used until now. Looking after others costs this process
// something itself, so it comes last here, and first at the end.
func Begin(s Server) (Mark, error) {
	m := Mark{ask: s}
	if err := m.others(); err != nil {
		return Mark{}, err
	}
	return m, m.self()
}

// End tells what was used from m to now.
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
		// The kernel counts by ticks what it lends us by the nanosecond, so a
		// little less than nothing can be left for others.
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

// Span is what was used between two marks.
type Span struct {
	Elapsed time.Duration
	// Client and Server are the processor time of this process and of the
	// servers.
	Client, Server time.Duration
	// Foreign is what all others used, as a share of all processors.
	Foreign float64
}

// Quiet reports whether others used little enough.
func (s Span) Quiet() bool { return s.Foreign <= Foreign }
