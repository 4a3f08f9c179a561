package realtest

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
)

// processLimit is how long a test waits for a report or for the end of a process.
const processLimit = 5 * time.Minute

// Process is a child process of a test. It reports by lines on its standard output,
// and may read commands, one per line, from its standard input.
type Process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan struct{} // closed when the process has ended and its output is read

	mu      sync.Mutex // guards the fields below
	lines   []string
	next    int           // index of the first line that Next has not read
	changed chan struct{} // closed and replaced at each line
	stderr  strings.Builder
}

// Self returns a command that runs the test binary itself, with one more variable in
// its environment.
func Self(t *testing.T, variable string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], args...)
	cmd.Env = append(os.Environ(), variable)
	return cmd
}

// StartProcess starts a command. The process is killed when the test ends.
func StartProcess(t *testing.T, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{cmd: cmd, ended: make(chan struct{}), changed: make(chan struct{})}
	cmd.Stderr = processErrors{p}
	stdout, err := cmd.StdoutPipe()
	check.Require(t, err)
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	check.Require(t, cmd.Start())
	go p.listen(bufio.NewScanner(stdout))
	t.Cleanup(p.Kill)
	return p
}

func (p *Process) listen(stdout *bufio.Scanner) {
	for stdout.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, stdout.Text())
		close(p.changed)
		p.changed = make(chan struct{})
		p.mu.Unlock()
	}
	_ = p.cmd.Wait() // ProcessState has the reason
	close(p.ended)
}

// Next waits for the next line with one of the prefixes and returns it. It returns
// false if the process ends without one; after five minutes, Next kills it.
func (p *Process) Next(prefixes ...string) (string, bool) {
	limit := time.AfterFunc(processLimit, p.Kill)
	defer limit.Stop()
	for {
		ended := p.hasEnded() // asked first: all lines of an ended process are there
		line, ok, changed := p.read(prefixes)
		if ok || ended {
			return line, ok
		}
		select {
		case <-changed:
		case <-p.ended:
		}
	}
}

// read returns the next line with one of the prefixes, or a channel that is closed at
// the next line.
func (p *Process) read(prefixes []string) (string, bool, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.next < len(p.lines) {
		line := p.lines[p.next]
		p.next++
		for _, prefix := range prefixes {
			if strings.HasPrefix(line, prefix) {
				return line, true, nil
			}
		}
	}
	return "", false, p.changed
}

func (p *Process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Await is Next; the test fails if the process ends without such a line.
func (p *Process) Await(t *testing.T, prefixes ...string) string {
	t.Helper()
	line, ok := p.Next(prefixes...)
	if !ok {
		t.Fatalf("the process ended before it reported %q: %s", prefixes, p)
	}
	return line
}

// Count returns the number of lines with a prefix and a suffix.
func (p *Process) Count(prefix, suffix string) int {
	n := 0
	for _, line := range p.Lines() {
		if strings.HasPrefix(line, prefix) && strings.HasSuffix(line, suffix) {
			n++
		}
	}
	return n
}

// Lines returns the lines until now.
func (p *Process) Lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

// Changed returns a channel that is closed at the next line.
func (p *Process) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// Ended returns a channel that is closed after the end of the process.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Command sends a line to the process.
func (p *Process) Command(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		t.Errorf("send %q: %v: %s", line, err, p)
	}
}

// CloseInput closes the standard input of the process.
func (p *Process) CloseInput() { _ = p.stdin.Close() }

// Signal sends a signal.
func (p *Process) Signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Errorf("signal %s: %v: %s", sig, err, p)
	}
}

// Kill kills the process, as SIGKILL does, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
	_ = p.stdin.Close()
}

// AwaitKilled waits for the end of the process. The test fails unless SIGKILL ended it.
func (p *Process) AwaitKilled(t *testing.T) {
	t.Helper()
	p.awaitEnd(t)
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the process was not killed: %s", p)
	}
}

// AwaitSuccess waits for the end of the process. The test fails unless its exit code is
// zero.
func (p *Process) AwaitSuccess(t *testing.T) {
	t.Helper()
	p.awaitEnd(t)
	if !p.cmd.ProcessState.Success() {
		t.Errorf("the process failed: %s", p)
	}
}

func (p *Process) awaitEnd(t *testing.T) {
	t.Helper()
	limit := time.NewTimer(processLimit)
	defer limit.Stop()
	select {
	case <-p.ended:
	case <-limit.C:
		t.Fatalf("the process does not end: %s", p)
	}
}

// Stderr returns what the process has written to its standard error.
func (p *Process) Stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// String describes the process and its output.
func (p *Process) String() string {
	state := "it runs"
	if p.hasEnded() {
		state = p.cmd.ProcessState.String()
	}
	return state + "; it wrote " + strings.Join(p.Lines(), "\n") + "\nand to stderr " + p.Stderr()
}

// processErrors collects the standard error of a process.
type processErrors struct{ *Process }

func (w processErrors) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stderr.Write(text)
}

// Restartable is a server program that keeps its address when it is started again.
type Restartable struct {
	*Process

	Addr string
	self func() *exec.Cmd
}

// maxStarts is how often a start is repeated while another program has the port.
const maxStarts = 1000

// StartRestartable starts the program that command returns for an address. The program
// prints a line that ends with "serving http://" and its address.
func StartRestartable(t *testing.T, command func(addr string) *exec.Cmd) *Restartable {
	t.Helper()
	r := &Restartable{Addr: "127.0.0.1:0"}
	r.self = func() *exec.Cmd { return command(r.Addr) }
	r.Start(t)
	return r
}

// Start starts the program again. Another program may have taken the port for a moment;
// the start is then repeated.
func (r *Restartable) Start(t *testing.T) {
	t.Helper()
	for tries := 1; ; tries++ {
		r.Process = StartProcess(t, r.self())
		for {
			line, ok := r.Next("")
			if !ok {
				break
			}
			if _, addr, serves := strings.Cut(line, "serving http://"); serves {
				if strings.HasSuffix(r.Addr, ":0") { // clients may read it later
					r.Addr, _, _ = strings.Cut(addr, " ")
				}
				return
			}
		}
		if !strings.Contains(r.Stderr(), "address already in use") || tries == maxStarts {
			t.Fatalf("the program did not start: %s", r.Process)
		}
	}
}
