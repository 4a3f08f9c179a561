//go:build unix

package server_test

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/semelgo/semel/internal/realtest"
)

// process is a chat server that runs as a child process.
type process struct {
	*client
	*realtest.Process
}

// start runs a chat server and waits until it serves.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := launch(t, args...)
	p.serving(t)
	return p
}

// launch starts a chat server.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	return &process{Process: realtest.StartProcess(t, child(t, "127.0.0.1:0", args...))}
}

// child returns a command that runs a chat server.
func child(t *testing.T, addr string, args ...string) *exec.Cmd {
	t.Helper()
	return realtest.Self(t, childVariable+"=1", append([]string{"-addr", addr}, args...)...)
}

// restartable starts a chat server that keeps its address when it is started again.
func restartable(t *testing.T, args ...string) *realtest.Restartable {
	t.Helper()
	return realtest.StartRestartable(t, func(addr string) *exec.Cmd { return child(t, addr, args...) })
}

// serving waits until the server prints its address.
func (p *process) serving(t *testing.T) {
	t.Helper()
	address, _, _ := strings.Cut(strings.TrimPrefix(p.Await(t, "chat: serving "), "chat: serving "), " ")
	p.client = newClient(t, address)
}

// arm makes the server kill or stop itself at a point.
func (p *process) arm(t *testing.T, act, point string) {
	t.Helper()
	p.Command(t, act+" "+point)
	p.Await(t, "armed")
}

// killedAt waits until the server has killed itself at the point.
func (p *process) killedAt(t *testing.T, point string) {
	t.Helper()
	p.Await(t, "reached "+point)
	p.AwaitKilled(t)
}

// stop ends the server as an operator does, and waits for its end.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	p.AwaitSuccess(t)
}
