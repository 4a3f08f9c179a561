package shop_test

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/realtest"
)

// patience is how long a test waits for something that must happen.
const patience = 2 * time.Minute

// process is a shop in a process of its own. It keeps its address when it is
// started again.
type process struct{ *realtest.Restartable }

func newProcess(t *testing.T, args ...string) *process {
	t.Helper()
	return &process{realtest.StartRestartable(t, func(addr string) *exec.Cmd {
		return realtest.Self(t, childVariable+"=1", append([]string{"-addr", addr}, args...)...)
	})}
}

// stop ends the process as an operator does.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	p.AwaitSuccess(t)
}
