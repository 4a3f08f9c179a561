package realtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// workers are the processes that work for a home. Each has the name of the home
// on its command line: PostgreSQL puts its cluster_name there, in each of its
// processes. What else could tell, such as the directory they work in, root may
// not see in a container.
func workers(h *serverDir) ([]int, error) {
	name := filepath.Base(h.dir)
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	if len(lines) == 0 {
		return listed(name)
	}
	var pids []int
	for _, path := range lines {
		words, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(words, []byte(name)) { // it has ended, or belongs to another server
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// listed asks ps, where there is no /proc.
func listed(name string) ([]int, error) {
	out, err := exec.CommandContext(context.Background(), "ps", "-axo", "pid=,command=").Output()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for line := range strings.Lines(string(out)) {
		pid, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(pid); err == nil && strings.Contains(command, name) {
			pids = append(pids, n)
		}
	}
	return pids, nil
}
