//go:build unix

package tasks_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ceiling is how long a test waits for an event.
const ceiling = 5 * time.Minute

// process is a child process of the test.
type process struct {
	child

	cmd      *exec.Cmd
	commands io.WriteCloser
	lines    chan string // its reports; closed after its end
	stderr   *lockedBuffer
	ended    chan struct{} // closed after it was waited for
}

// start runs a process, which is killed when the test ends.
func start(t *testing.T, c child) *process {
	t.Helper()
	told, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{
		child: c, cmd: exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0]), lines: make(chan string, 1000),
		stderr: new(lockedBuffer), ended: make(chan struct{}),
	}
	p.cmd.Env = append(os.Environ(), childVariable+"="+string(told))
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.commands, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.listen(out)
	t.Cleanup(p.kill)
	return p
}

// listen reads the process's reports until its end.
func (p *process) listen(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.lines <- lines.Text()
	}
	_ = p.cmd.Wait() // its state has the reason
	close(p.ended)
	close(p.lines)
}

// kill kills the process, as SIGKILL does, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	for range p.lines {
	}
	<-p.ended
	_ = p.commands.Close()
}

// signal stops the process or lets it continue.
func (p *process) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Errorf("signal %s: %v", sig, err)
	}
}

// command sends a command to the process.
func (p *process) command(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(p.commands, line+"\n"); err != nil {
		t.Errorf("order %s to %q: %v; it said %s", p.Name, line, err, p.stderr)
	}
}

// await waits until the process reports one of the lines, and returns it.
func (p *process) await(t *testing.T, lines ...string) string {
	t.Helper()
	limit := time.After(ceiling)
	for {
		select {
		case said, ok := <-p.lines:
			if !ok {
				t.Fatalf("%s ended before it said %q: %s; it said %s", p.Name, lines, p.cmd.ProcessState, p.stderr)
			}
			if slices.Contains(lines, said) {
				return said
			}
		case <-limit:
			t.Fatalf("%s does not say %q", p.Name, lines)
		}
	}
}

// awaitKilled waits until the process has been killed by SIGKILL.
func (p *process) awaitKilled(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(ceiling):
		t.Fatalf("%s goes on", p.Name)
	}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("%s ended with %s, want SIGKILL; it said %s", p.Name, p.cmd.ProcessState, p.stderr)
	}
}

// endAll tells the processes to stop, and fails unless they end in an orderly way.
func endAll(t *testing.T, all []*process) {
	t.Helper()
	for _, p := range all {
		p.command(t, "stop")
	}
	limit := time.After(ceiling)
	for _, p := range all {
		select {
		case <-p.ended:
		case <-limit:
			t.Fatalf("%s does not stop", p.Name)
		}
		if !p.cmd.ProcessState.Success() {
			t.Errorf("%s stopped with %s: %s", p.Name, p.cmd.ProcessState, p.stderr)
		}
	}
}

// lockedBuffer keeps the output of a process for concurrent readers.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
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
