package realtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// process is a program that runs as a child of the test binary.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed once it has ended and was waited for
}

// starter is the one thread that starts children: on Linux a child is killed
// when the thread ends that started it, so that thread must live for ever.
var starter = sync.OnceValue(func() chan<- func() { //nolint:gochecknoglobals // there is one thread for the whole process
	starts := make(chan func())
	go background(func() {
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	})
	return starts
})

// Background names the function in which the package's own goroutines run that
// live as long as the test binary, for goleak.IgnoreAnyFunction.
const Background = "github.com/semelgo/semel/internal/realtest.background"

// background runs what may outlive a test; see Background.
func background(run func()) { run() }

// start runs cmd in a new process group, as the user, with its output in the file
// at log.
func start(cmd *exec.Cmd, as *syscall.Credential, log string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = attributes(as)
	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go background(func() {
		defer close(p.ended)
		_ = cmd.Wait() // how it ended is in its log
	})
	return p, nil
}

// signal does nothing if p has ended.
func (p *process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", sig, err)
	}
	return nil
}

// kill ends p, if there is one, and waits for its end.
func (p *process) kill() error {
	if p == nil {
		return nil
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.ended
	return nil
}
