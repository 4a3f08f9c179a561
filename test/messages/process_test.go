//go:build unix

package messages_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ceiling is how long a test waits for an event.
const ceiling = 2 * time.Minute

// process is a consumer that runs as a child.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	log   bytes.Buffer // its stderr; read after its end
	ended chan struct{}
	seen  *counters

	mu    sync.Mutex // guards the fields below
	lines []string
}

// counters counts the reports of all consumers of a test.
type counters struct {
	mu      sync.Mutex
	hasSaid map[string]int
}

func (m *counters) add(line string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hasSaid == nil {
		m.hasSaid = make(map[string]int)
	}
	words := strings.Fields(line)
	for _, word := range words {
		m.hasSaid[word]++
	}
	if words[0] == "Ack" && !strings.Contains(line, "duplicate") {
		m.hasSaid["handled"]++
	}
}

func (m *counters) count(word string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hasSaid[word]
}

// start runs a consumer. It is killed when the test ends.
func start(t *testing.T, c consumer, seen *counters) *process {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.CommandContext(t.Context(), os.Args[0]), ended: make(chan struct{}), seen: seen}
	p.cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	p.cmd.Stderr = &p.log
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.listen(bufio.NewScanner(stdout))
	t.Cleanup(func() {
		p.kill()
		<-p.ended
	})
	return p
}

func (p *process) listen(lines *bufio.Scanner) {
	for lines.Scan() {
		p.seen.add(lines.Text())
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		p.mu.Unlock()
	}
	_ = p.cmd.Wait()
	close(p.ended)
}

func (p *process) kill() { _ = p.cmd.Process.Kill() }

// hasSaid reports whether a line has this prefix.
func (p *process) hasSaid(prefix string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

// killedAt waits until the consumer has killed itself at the point.
func (p *process) killedAt(t *testing.T, point string) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(ceiling):
		t.Fatalf("it lives, and has said %q", p.lines)
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || status.Signal() != syscall.SIGKILL || !p.hasSaid("reached "+point) {
		t.Fatalf("it ended with %v, having said %q: %s", p.cmd.ProcessState, p.lines, &p.log)
	}
}

// stop ends a consumer in an orderly way.
func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.stdin.Close()
	select {
	case <-p.ended:
	case <-time.After(ceiling):
		t.Fatal("the consumer does not stop")
	}
	if !p.cmd.ProcessState.Success() {
		t.Errorf("the consumer stopped with %v: %s", p.cmd.ProcessState, &p.log)
	}
}

// until polls until a condition holds.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for limit := time.After(ceiling); !so(); {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-limit:
			t.Fatalf("it did not come to that: %s", what)
		}
	}
}
