package shop_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for something that must happen.
const patience = 2 * time.Minute

// process is a shop in a process of its own. It keeps its address when it is
// started again.
type process struct {
	addr string
	args []string

	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process has ended and is waited for
	stderr *lockedBuffer
}

func newProcess(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{addr: "127.0.0.1:0", args: args}
	p.start(t)
	t.Cleanup(p.kill)
	return p
}

// start starts the process and waits until it serves. Another program may have the
// port for a moment after a kill; the start is then repeated.
func (p *process) start(t *testing.T) {
	t.Helper()
	for limit := time.Now().Add(patience); ; {
		line := p.launch(t)
		if _, addr, ok := strings.Cut(line, "serving http://"); ok {
			if strings.HasSuffix(p.addr, ":0") { // clients read it later
				p.addr = addr
			}
			return
		}
		<-p.ended
		if !strings.Contains(p.stderr.String(), "address already in use") || time.Now().After(limit) {
			t.Fatalf("the shop did not start: %s", p.stderr)
		}
	}
}

// launch returns the first line that the process prints, or "" when it ends without.
func (p *process) launch(t *testing.T) string {
	t.Helper()
	p.cmd = exec.CommandContext(t.Context(), os.Args[0], append([]string{"-addr", p.addr}, p.args...)...)
	p.cmd.Env = append(os.Environ(), childVariable+"=1")
	p.stderr, p.ended = new(lockedBuffer), make(chan struct{})
	p.cmd.Stderr = p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	cmd, ended := p.cmd, p.ended
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	return strings.TrimSpace(line)
}

// kill ends the process as kill -9 does, and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// stop ends the process as an operator does.
func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.ended
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the shop ended with %d: %s", code, p.stderr)
	}
}

// lockedBuffer can be read while a process writes to it.
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
