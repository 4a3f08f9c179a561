package realtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// instance is a PostgreSQL that this package runs.
type instance struct {
	home    *home
	program string
	options []string // name=value
	port    int

	mu     sync.Mutex
	starts int
	proc   *process // nil: it does not run
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
	if err := p.startAnywhere(ctx); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return p, nil
}

// initialise makes the cluster's files.
func (p *instance) initialise(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ceiling)
	defer cancel()
	cmd := exec.CommandContext(ctx, beside(p.program, "initdb"), "-D", p.data(),
		"-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--wal-segsize=1")
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

// startAnywhere starts the server for the first time, on a port that is free.
func (p *instance) startAnywhere(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ceiling)
	defer cancel()
	return onFreePort(ctx, func(port int) error {
		p.port = port
		return p.startOnce(ctx)
	})
}

// start starts the server again and waits until it answers. A server that was
// killed may leave something in its place for a moment; then it is tried again.
func (p *instance) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ceiling)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		err := p.startOnce(ctx)
		if !errors.Is(err, errInUse) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}

func (p *instance) startOnce(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc != nil {
		return errors.New("the server runs")
	}
	p.starts++
	args := []string{"-D", p.data(), "-p", strconv.Itoa(p.port)}
	for _, o := range append(p.options, "cluster_name="+p.name()) {
		args = append(args, "-c", o)
	}
	cmd := exec.Command(p.program, args...) //nolint:noctx // it outlives the context that bounds its start
	cmd.Dir = p.home.dir
	proc, err := start(cmd, p.home.as, p.log())
	if err != nil {
		return err
	}
	if err := await(ctx, proc, p.url(), p.name()+"/postgres", p.log()); err != nil {
		err = errors.Join(err, proc.signal(syscall.SIGKILL))
		<-proc.ended
		return err
	}
	p.proc = proc
	return nil
}

func (p *instance) data() string { return p.home.file("data") }

// name is on the command line of each of the server's processes.
func (p *instance) name() string { return filepath.Base(p.home.dir) }

// log is where the server writes, a file for each start.
func (p *instance) log() string { return p.home.file(fmt.Sprintf("server-%d.log", p.starts)) }

func (p *instance) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

func (p *instance) url() string {
	return "postgres://postgres@" + p.addr() + "/postgres?sslmode=disable"
}

// close ends the server and removes all it had.
func (p *instance) close() error {
	return errors.Join(p.kill(), p.home.close())
}
