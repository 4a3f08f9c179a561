package usage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of the counts in /proc. It is the same on every machine on which
// Go runs on Linux.
const tick = 10 * time.Millisecond

// machine reads the used processor time of all processes since the start, and the
// capacity. Time that a hypervisor gave to others counts as used.
func machine() (busy, capacity time.Duration, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, fmt.Errorf("read usage of the machine, which takes Linux: %w", err)
	}
	return parseMachine(string(text))
}

// parseMachine reads the line "cpu user nice system idle iowait irq softirq steal
// guest guest_nice", in ticks. The last two are included in the first two.
func parseMachine(text string) (busy, capacity time.Duration, err error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	const steal = 8
	if len(fields) <= steal || fields[0] != "cpu" {
		return 0, 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	for i, f := range fields[1 : steal+1] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/stat begins with %q: %w", line, err)
		}
		ticks := time.Duration(n) * tick
		capacity += ticks
		if idle := i == 3 || i == 4; !idle {
			busy += ticks
		}
	}
	return busy, capacity, nil
}

// Tree reports the processor time of a process and its descendants. Of descendants
// that have ended it counts the time that their parents have collected by waiting.
func Tree(root int) Server {
	return func() (time.Duration, error) {
		all, err := processes()
		if err != nil {
			return 0, err
		}
		if _, ok := all[root]; !ok {
			return 0, fmt.Errorf("process %d is not there", root)
		}
		var sum time.Duration
		for pid, p := range all {
			if descends(all, pid, root) {
				sum += p.used(pid) + p.waited
			}
		}
		return sum, nil
	}
}

// Sum reports the processor time of several servers.
func Sum(servers ...Server) Server {
	return func() (sum time.Duration, err error) {
		for _, s := range servers {
			used, err := s()
			if err != nil {
				return 0, err
			}
			sum += used
		}
		return sum, nil
	}
}

func descends(all map[int]process, pid, root int) bool {
	for pid > 0 && pid != root {
		pid = all[pid].parent // 0 if there is no such process
	}
	return pid == root
}

// process is the content of /proc/<pid>/stat.
type process struct {
	parent  int
	threads int
	own     time.Duration // user and system
	waited  time.Duration // of its children that have ended
}

// processes reads all processes.
func processes() (map[int]process, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	all := make(map[int]process, len(paths))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("read usage: %w", err)
		}
		pid, p, err := parseProcess(text)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		all[pid] = p
	}
	return all, nil
}

// parseProcess reads "pid (name) state ppid …"; the name may hold anything.
func parseProcess(text []byte) (pid int, p process, err error) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return 0, p, fmt.Errorf("no name in %q", text)
	}
	if pid, err = strconv.Atoi(strings.TrimSpace(string(text[:open]))); err != nil {
		return 0, p, err
	}
	// numbered as in proc(5), where the state is field 3
	fields := strings.Fields(string(text[end+1:]))
	const ppid, utime, stime, cutime, cstime, threads = 4, 14, 15, 16, 17, 20
	if len(fields) <= threads-3 {
		return 0, p, fmt.Errorf("too short: %q", text)
	}
	number := func(field int) time.Duration {
		n, wrong := strconv.ParseInt(fields[field-3], 10, 64)
		err = errors.Join(err, wrong)
		return time.Duration(n)
	}
	p = process{
		parent: int(number(ppid)), threads: int(number(threads)),
		own:    (number(utime) + number(stime)) * tick,
		waited: (number(cutime) + number(cstime)) * tick,
	}
	return pid, p, err
}

// used returns the processor time of the process itself: in nanoseconds if it has
// one thread and the kernel counts that way, because hundreds of processes with a
// tick each would add up to seconds.
func (p process) used(pid int) time.Duration {
	if p.threads != 1 {
		return p.own
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/schedstat")
	if err != nil {
		return p.own
	}
	first, _, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseInt(first, 10, 64)
	if err != nil || n == 0 {
		return p.own
	}
	return time.Duration(n)
}
