//go:build unix

package server_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a child process.
type process struct {
	*client

	cmd    *exec.Cmd
	orders io.WriteCloser
	stderr *lockedBuffer

	mu    sync.Mutex // guards the fields below
	lines []string
	read  int // number of lines that await has read
	more  *sync.Cond
	ended bool
}

// start runs a chat server as a child process and waits until it serves.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := launch(t, "chat", append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	p.serving(t)
	return p
}

// serving waits until the server prints its address.
func (p *process) serving(t *testing.T) {
	t.Helper()
	line, ok := p.await("chat: serving ")
	if !ok {
		t.Fatalf("the server did not start: %s", p.stderr)
	}
	address, _, _ := strings.Cut(strings.TrimPrefix(line, "chat: serving "), " ")
	p.client = newClient(t, address)
}

// launch runs a child of this binary. It is killed when the test ends.
func launch(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(t.Context(), os.Args[0], args...), stderr: new(lockedBuffer)}
	p.more = sync.NewCond(&p.mu)
	p.cmd.Env = append(os.Environ(), childVariable+"="+name)
	p.cmd.Stderr = p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.orders, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.listen(bufio.NewScanner(stdout))
	t.Cleanup(func() {
		p.kill()
		_ = p.cmd.Wait()
	})
	return p
}

func (p *process) listen(lines *bufio.Scanner) {
	for lines.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		p.more.Broadcast()
		p.mu.Unlock()
	}
	p.mu.Lock()
	p.ended = true
	p.more.Broadcast()
	p.mu.Unlock()
}

// await waits for the next line with a prefix. It returns false if the child ends
// without printing one.
func (p *process) await(prefix string) (string, bool) {
	limit := time.AfterFunc(patience, p.kill)
	defer limit.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for p.read < len(p.lines) {
			line := p.lines[p.read]
			p.read++
			if strings.HasPrefix(line, prefix) {
				return line, true
			}
		}
		if p.ended {
			return "", false
		}
		p.more.Wait()
	}
}

// said counts the lines with a prefix and a suffix.
func (p *process) said(prefix, suffix string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, line := range p.lines {
		if strings.HasPrefix(line, prefix) && strings.HasSuffix(line, suffix) {
			n++
		}
	}
	return n
}

// arm makes the child kill or stop itself at a point.
func (p *process) arm(t *testing.T, act, point string) {
	t.Helper()
	if _, err := io.WriteString(p.orders, act+" "+point+"\n"); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.await("armed"); !ok {
		t.Fatalf("the child ended before it was armed: %s", p.stderr)
	}
}

// reached waits until the child has reached the point.
func (p *process) reached(t *testing.T, point string) {
	t.Helper()
	if _, ok := p.await("reached " + point); !ok {
		t.Fatalf("the child ended without having been at the point %q: it said %q: %s", point, p.lines, p.stderr)
	}
}

// killed waits for the end of the child. The test fails unless SIGKILL ended it.
func (p *process) killed(t *testing.T) {
	t.Helper()
	limit := time.AfterFunc(patience, p.kill)
	defer limit.Stop()
	p.await("\x00") // no line has this prefix, so await reads to the end
	_ = p.cmd.Wait()
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child ended with %v, want SIGKILL by itself; stderr: %s", p.cmd.ProcessState, p.stderr)
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
}

// stop ends the child as an operator does, and waits for its end.
func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.await("\x00")
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the server stopped with %v; stderr: %s", err, p.stderr)
	}
}

// lockedBuffer collects a child's output and can be read at any time.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(text)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
