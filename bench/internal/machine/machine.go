// Package machine describes the machine of a measurement.
package machine

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semelgo/semel/bench/internal/stat"
)

// Machine is what results depend on.
type Machine struct {
	CPU      string
	Cores    int
	Memory   string
	Kernel   string
	Go       string
	Postgres string // empty: no server was started
	Fsync    string // duration of an fsync on the disk of the servers' files
	Date     string
}

// Describe inspects the machine. It creates temporary files in dir.
func Describe(ctx context.Context, dir string) (Machine, error) {
	fsync, err := fsync(ctx, dir)
	return Machine{
		CPU:    orUnknown(field("/proc/cpuinfo", "model name")),
		Cores:  runtime.NumCPU(),
		Memory: memory(field("/proc/meminfo", "MemTotal")),
		Kernel: orUnknown(line("/proc/sys/kernel/osrelease")),
		Go:     runtime.Version(),
		Fsync:  fsync,
		Date:   time.Now().UTC().Format("2 January 2006, 15:04 UTC"),
	}, err
}

// Lines formats the description, one fact per line.
func (m Machine) Lines() []string {
	lines := []string{
		fmt.Sprintf("%s, %d cores, %s of memory, Linux %s", m.CPU, m.Cores, m.Memory, m.Kernel),
		m.Go,
	}
	if m.Postgres != "" {
		lines = append(lines, "PostgreSQL "+m.Postgres)
	}
	return append(lines, m.Fsync, m.Date)
}

// syncs is the number of fsyncs that are timed.
const syncs = 200

// fsync measures how long it takes to write 8 kB and fsync, as a database does when
// it commits.
func fsync(ctx context.Context, dir string) (string, error) {
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return "", fmt.Errorf("measure fsync: %w", err)
	}
	defer f.Close() // the lab removes the directory
	page := make([]byte, 8<<10)
	took := make([]time.Duration, 0, syncs)
	for i := range syncs {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if _, err := f.WriteAt(page, int64(i*len(page))); err != nil {
			return "", fmt.Errorf("measure fsync: %w", err)
		}
		began := time.Now()
		if err := f.Sync(); err != nil {
			return "", fmt.Errorf("measure fsync: %w", err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return fmt.Sprintf("fsync of 8 kB: median %s, 99 of 100 within %s",
		stat.Quantile(took, 0.5).Round(time.Microsecond), stat.Quantile(took, 0.99).Round(time.Microsecond)), nil
}

// field returns the first value after a name and a colon.
func field(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if k, v, ok := strings.Cut(in.Text(), ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// memory formats "24731708 kB" for readers.
func memory(text string) string {
	number, ok := strings.CutSuffix(text, " kB")
	kilo, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil {
		return orUnknown(text)
	}
	return fmt.Sprintf("%.1f GiB", kilo/(1<<20))
}

func line(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
