// Package lab runs experiments: it limits their time, starts their servers, and
// collects their points.
package lab

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/usage"
)

// Lab is used by one experiment at a time.
type Lab struct {
	// Quick limits the run to 3 minutes. Longer experiments are skipped.
	Quick bool
	// Bound is how long after the start the last experiment of a quick run may
	// begin.
	Bound time.Duration
	// Patience is the time that is left for repeating disturbed slots, in all
	// experiments together: at first 6 minutes, and 10 seconds with Quick.
	Patience time.Duration

	out     io.Writer
	began   time.Time
	dir     *directory
	closers []func() error

	server *Server
	points []Point
}

// Experiment measures one or more rows in the same runs.
type Experiment struct {
	// Name is a short name that is shown during the run.
	Name string
	Rows []goal.Row
	// Run measures. A row without a finding was not measured. The error says why;
	// findings before it count all the same.
	Run func(ctx context.Context, l *Lab) ([]goal.Finding, error)
	// Spread calls Run for a few rounds at a time: before all other experiments,
	// between them, and after them. It is for measurements that depend on the
	// machine's speed, which changes within minutes. The findings of the last call
	// are of all rounds.
	Spread bool
}

// Point is a point of a chart.
type Point struct {
	Chart, Series string
	X, Y          float64
}

// New returns a lab that reports progress to out. The caller must close it.
func New(out io.Writer, quick bool) (*Lab, error) {
	dir, err := newDirectory(os.TempDir())
	if err != nil {
		return nil, err
	}
	l := &Lab{Quick: quick, out: out, began: time.Now(), Patience: 6 * time.Minute, dir: dir}
	if quick {
		l.Patience, l.Bound = 10*time.Second, 140*time.Second
	}
	return l, nil
}

// Closing registers f to be called at the end of the experiment, last first.
func (l *Lab) Closing(f func() error) { l.closers = append(l.closers, f) }

// Leave ends what the experiment has started, except for shared servers.
func (l *Lab) Leave() error {
	var err error
	for len(l.closers) > 0 {
		last := len(l.closers) - 1
		err = errors.Join(err, l.closers[last]())
		l.closers = l.closers[:last]
	}
	return err
}

// Close stops all servers and removes all files.
func (l *Lab) Close() error {
	err := l.Leave()
	if l.server != nil {
		err = errors.Join(err, l.server.running.Close())
	}
	return errors.Join(err, l.dir.remove())
}

// Dir returns a directory for files. It is removed when the lab is closed, or by
// the next lab.
func (l *Lab) Dir() string { return l.dir.path }

// Logf reports progress on a line that begins with the time since the start.
func (l *Lab) Logf(format string, args ...any) {
	fmt.Fprintf(l.out, "%5.0fs  %s\n", time.Since(l.began).Seconds(), fmt.Sprintf(format, args...))
}

// Point adds a point to a chart.
func (l *Lab) Point(chart, series string, x, y float64) {
	l.points = append(l.points, Point{chart, series, x, y})
}

// Points returns the points of a chart, in the order in which they were added.
func (l *Lab) Points(chart string) []Point {
	var of []Point
	for _, p := range l.points {
		if p.Chart == chart {
			of = append(of, p)
		}
	}
	return of
}

// Late reports whether no further experiment may begin.
func (l *Lab) Late() bool { return l.Bound > 0 && time.Since(l.began) > l.Bound }

// Rounds is the number of rounds of each side.
func (l *Lab) Rounds() int { return l.either(3, 7) }

// Share is the number of rounds per call where the rounds are spread over the run.
func (l *Lab) Share() int { return l.either(1, 2) }

// Trials is the number of trials of each setting, to choose one.
func (l *Lab) Trials() int { return l.either(1, 2) }

// Slot is the length of a slot.
func (l *Lab) Slot() time.Duration {
	return time.Duration(l.either(400, 1500)) * time.Millisecond
}

// Warm is the time before a slot in which a side warms up.
func (l *Lab) Warm() time.Duration {
	return time.Duration(l.either(100, 300)) * time.Millisecond
}

func (l *Lab) either(quick, full int) int {
	if l.Quick {
		return quick
	}
	return full
}

// Benchmark runs f as go test -bench does, for the length of a slot.
func (l *Lab) Benchmark(f func(b *testing.B)) (testing.BenchmarkResult, error) {
	testing.Init()
	if err := flag.Set("test.benchtime", l.Slot().String()); err != nil {
		return testing.BenchmarkResult{}, fmt.Errorf("set the time of benchmarks: %w", err)
	}
	return testing.Benchmark(f), nil
}

// Again waits until other processes leave the machine idle, and reports whether
// there is time to repeat a disturbed slot. The total time for repetitions is
// bounded.
func (l *Lab) Again(ctx context.Context) bool {
	const look = 250 * time.Millisecond
	l.Patience -= l.Warm() + l.Slot()
	for l.Patience > 0 {
		l.Patience -= look
		before, err := usage.Begin(usage.None)
		if err != nil {
			return false
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return false
		}
		if span, err := before.End(); err != nil || span.Quiet() {
			return err == nil
		}
	}
	return false
}
