package realtest

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// kill kills the server and all its child processes. Those have sessions of their
// own and would live on for a moment, so kill searches for them until none is left.
func (p *instance) kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc == nil {
		return nil
	}
	if err := p.signalEach(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.proc.ended
	p.proc = nil
	return p.awaitNone()
}

// stop ends the server in the orderly way that sig requests.
func (p *instance) stop(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc == nil {
		return nil
	}
	if err := p.proc.signal(sig); err != nil {
		return err
	}
	select {
	case <-p.proc.ended:
	case <-time.After(ceiling):
		return fmt.Errorf("the server goes on\n%s", tail(p.log()))
	}
	p.proc = nil
	return p.awaitNone()
}

// signalAll signals the server and all processes it has started.
func (p *instance) signalAll(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc == nil {
		return errors.New("the server does not run")
	}
	return p.signalEach(sig)
}

// signalEach signals the server and its children. The server is stopped first, so
// that it starts no more children.
func (p *instance) signalEach(sig syscall.Signal) error {
	if err := p.proc.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	pids, err := workers(p.serverDir)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal %d: %w", pid, err)
		}
	}
	return nil
}

// awaitNone kills the remaining processes of a server that has ended, until none is
// left.
func (p *instance) awaitNone() error {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	bound := time.After(ceiling)
	for {
		pids, err := workers(p.serverDir)
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
		select {
		case <-look.C:
		case <-bound:
			return fmt.Errorf("processes %v do not end", pids)
		}
	}
}
