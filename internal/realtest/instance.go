package realtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// launcher knows how the servers of one engine are started.
type launcher interface {
	// prepare makes the files of a new server. It is called once.
	prepare(ctx context.Context, h *serverDir) error
	// launch starts p's process on p's port, and returns when it answers there. An
	// error that wraps errInUse means that another process has p's port or files.
	launch(ctx context.Context, p *instance) (*process, error)
	// url is the address of the server at host and port.
	url(addr string) string
}

// instance is a server that this package runs.
type instance struct {
	launcher  launcher
	serverDir *serverDir
	port      int

	mu     sync.Mutex
	starts int
	proc   *process // nil: it is not running
}

// run makes a new server and starts it. It is ready when it returns.
func run(ctx context.Context, l launcher) (*instance, error) {
	base := baseDir()
	if _, ok := l.(*mariadbServer); ok {
		base = diskDir()
	}
	h, err := newServerDir(base)
	if err != nil {
		return nil, err
	}
	p := &instance{launcher: l, serverDir: h}
	if err := l.prepare(ctx, h); err != nil {
		return nil, errors.Join(err, h.close())
	}
	if err := p.startAnywhere(ctx); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return p, nil
}

// startAnywhere starts the server for the first time, on a port that is free.
func (p *instance) startAnywhere(ctx context.Context) error {
	return onFreePort(ctx, func(port int) error {
		p.port = port
		return p.startOnce(ctx)
	})
}

// start starts the server again and waits until it answers. It retries, because
// files of a killed server may remain for a moment.
func (p *instance) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startCeiling)
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
	ctx, cancel := context.WithTimeout(ctx, startCeiling)
	defer cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc != nil {
		return errors.New("the server runs")
	}
	p.starts++
	proc, err := p.launcher.launch(ctx, p)
	if err != nil {
		return err
	}
	p.proc = proc
	return nil
}

// name is on the command line of each of the server's processes.
func (p *instance) name() string { return filepath.Base(p.serverDir.dir) }

// log is where the server writes, a file for each start.
func (p *instance) log() string { return p.serverDir.file(fmt.Sprintf("server-%d.log", p.starts)) }

func (p *instance) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

func (p *instance) url() string { return p.launcher.url(p.addr()) }

// close ends the server and removes its directory.
func (p *instance) close() error {
	return errors.Join(p.kill(), p.serverDir.close())
}
