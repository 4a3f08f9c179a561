// Package lab is where experiments are made: how long they may take, on which
// servers, and where what was seen is put.
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
	// Quick: as much as fits in 3 minutes. What takes longer is left out.
	Quick bool
	// Bound is how long after the start the last experiment of a quick run may
	// begin.
	Bound time.Duration
	// Patience is how much time is left for running again what was not quiet, in
	// all experiments together: at first 6 minutes, and 10 seconds with Quick.
	Patience time.Duration

	out     io.Writer
	began   time.Time
	dir     *directory
	closers []func() error

	server *Server
	points []Point
}

// Experiment measures some rows in one go, because they are about the same runs.
type Experiment struct {
	// Name is a short word for those who watch.
	Name string
	Rows []goal.Row
	// Run measures, in l. A row that it gives no finding of was not measured; an
	// error says why, and what was found before it counts all the same.
	Run func(ctx context.Context, l *Lab) ([]goal.Finding, error)
	// Spread has Run called for a few rounds at a time, at the beginning of all, among
	// the others and at the end, because what it measures goes by how quick the machine
	// is for some minutes. What it finds the last time is of all rounds.
	Spread bool
}

// Point is one that a chart has.
type Point struct {
	Chart, Series string
	X, Y          float64
}

// New returns a lab that says on out how far it is. Close it.
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

// Closing has f called when the experiment is over: the last first.
func (l *Lab) Closing(f func() error) { l.closers = append(l.closers, f) }

// Leave ends what the experiment has begun, but for what all share.
func (l *Lab) Leave() error {
	var err error
	for len(l.closers) > 0 {
		last := len(l.closers) - 1
		err = errors.Join(err, l.closers[last]())
		l.closers = l.closers[:last]
	}
	return err
}

// Close ends all servers, and removes all files.
func (l *Lab) Close() error {
	err := l.Leave()
	if l.server != nil {
		err = errors.Join(err, l.server.running.Close())
	}
	return errors.Join(err, l.dir.remove())
}

// Dir is a directory for files, removed when the lab is closed, or when the next one is
// opened.
func (l *Lab) Dir() string { return l.dir.path }

// Logf says how far it is, on a line that begins with the time since the start.
func (l *Lab) Logf(format string, args ...any) {
	fmt.Fprintf(l.out, "%5.0fs  %s\n", time.Since(l.began).Seconds(), fmt.Sprintf(format, args...))
}

// Point adds one to a chart.
func (l *Lab) Point(chart, series string, x, y float64) {
	l.points = append(l.points, Point{chart, series, x, y})
}

// Points are those of one chart, in the order they came.
func (l *Lab) Points(chart string) []Point {
	var of []Point
	for _, p := range l.points {
		if p.Chart == chart {
			of = append(of, p)
		}
	}
	return of
}

// Late reports whether no experiment may begin any more.
func (l *Lab) Late() bool { return l.Bound > 0 && time.Since(l.began) > l.Bound }

// Rounds is how often each side has its turn.
func (l *Lab) Rounds() int { return l.either(3, 7) }

// Share is how often each side has its turn at a time, where the rounds are spread over
// the run.
func (l *Lab) Share() int { return l.either(1, 2) }

// Trials is how often each of several settings is tried, to choose one.
func (l *Lab) Trials() int { return l.either(1, 2) }

// Slot is how long a turn is measured.
func (l *Lab) Slot() time.Duration {
	return time.Duration(l.either(400, 1500)) * time.Millisecond
}

// Warm is how long before that a side may warm up.
func (l *Lab) Warm() time.Duration {
	return time.Duration(l.either(100, 300)) * time.Millisecond
}

func (l *Lab) either(quick, full int) int {
	if l.Quick {
		return quick
	}
	return full
}

// Benchmark runs f as go test -bench does, for as long as a turn.
func (l *Lab) Benchmark(f func(b *testing.B)) (testing.BenchmarkResult, error) {
	testing.Init()
	if err := flag.Set("test.benchtime", l.Slot().String()); err != nil {
		return testing.BenchmarkResult{}, fmt.Errorf("set the time of benchmarks: %w", err)
	}
	return testing.Benchmark(f), nil
}

// Again waits until others leave the machine alone, and reports whether there is
// time to run once more what was not quiet. The time for that is bounded, over
// all experiments.
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
