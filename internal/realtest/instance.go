package realtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
)

// instance is a PostgreSQL that this package runs.
type instance struct {
	home    *home
	program string
	options []string // name=value
	port    int

	mu   sync.Mutex
	proc *process // nil: it does not run
}

// usual settings: nothing waits for the disk, and nothing is left in shared
// memory that has a name.
func usual() []string {
	return []string{
		"fsync=off", "full_page_writes=off", "shared_buffers=32MB", "max_connections=200",
		"listen_addresses=127.0.0.1", "unix_socket_directories=", "dynamic_shared_memory_type=mmap",
		"logging_collector=off", "autovacuum_naptime=10s",
	}
}

// startPostgres makes a new cluster and starts it. It is ready when it returns.
func startPostgres(ctx context.Context, program string, settings []string) (*instance, error) {
	h, err := newHome()
	if err != nil {
		return nil, err
	}
	p := &instance{home: h, program: program, options: slices.Concat(usual(), settings)}
	if err := p.initialise(ctx); err != nil {
		return nil, errors.Join(err, h.close())
	}
	if err := onFreePort(ctx, func(port int) error { p.port = port; return p.start(ctx) }); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return p, nil
}

// initialise makes the cluster's files.
func (p *instance) initialise(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ceiling)
	defer cancel()
	cmd := exec.CommandContext(ctx, beside(p.program, "initdb"), "-D", p.data(),
		"-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	cmd.Dir = p.home.dir
	log := p.home.file("initdb.log")
	made, err := start(cmd, p.home.as, log)
	if err != nil {
		return err
	}
	<-made.ended
	if !cmd.ProcessState.Success() {
		return fmt.Errorf("initdb: %s\n%s", cmd.ProcessState, tail(log))
	}
	return nil
}

// start starts the server and waits until it answers. A server that was killed
// may leave others in its place for a moment, so a start that ends at once is
// tried again.
func (p *instance) start(ctx context.Context) error {
	const tries = 5
	ctx, cancel := context.WithTimeout(ctx, ceiling)
	defer cancel()
	var err error
	for range tries {
		if err = p.startOnce(ctx); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

func (p *instance) startOnce(ctx context.Context) error {
	args := []string{"-D", p.data(), "-p", strconv.Itoa(p.port)}
	for _, o := range p.options {
		args = append(args, "-c", o)
	}
	cmd := exec.Command(p.program, args...) //nolint:noctx // it outlives the context that bounds its start
	cmd.Dir = p.home.dir
	proc, err := start(cmd, p.home.as, p.log())
	if err != nil {
		return err
	}
	if err := await(ctx, proc, p.url(), p.log()); err != nil {
		return errors.Join(err, proc.signal(syscall.SIGKILL))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proc = proc
	return nil
}

func (p *instance) data() string { return p.home.file("data") }
func (p *instance) log() string  { return p.home.file("server.log") }

func (p *instance) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

func (p *instance) url() string {
	return "postgres://postgres@" + p.addr() + "/postgres?sslmode=disable"
}

// close ends the server and removes all it had.
func (p *instance) close() error {
	return errors.Join(p.kill(), p.home.close())
}
