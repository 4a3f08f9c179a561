package realtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// cluster describes how a PostgreSQL server is started.
type cluster struct {
	program string
	options []string // name=value
	segment int      // size of a file of its log, in megabytes
	env     []string // NAME=value, besides this process's environment
}

// newCluster takes settings that override the defaults.
func newCluster(program string, settings []string) launcher {
	return &cluster{program: program, options: append(defaultCluster(), settings...), segment: 1}
}

// defaultCluster: nothing waits for the disk, and no named shared memory is left.
func defaultCluster() []string {
	return []string{
		"fsync=off", "full_page_writes=off", "shared_buffers=32MB", "max_connections=200",
		"listen_addresses=127.0.0.1", "unix_socket_directories=", "dynamic_shared_memory_type=mmap",
		"logging_collector=off", "autovacuum_naptime=10s",
	}
}

func (c *cluster) data(h *serverDir) string { return h.file("data") }

// prepare makes the cluster's files.
func (c *cluster) prepare(ctx context.Context, h *serverDir) error {
	ctx, cancel := context.WithTimeout(ctx, startCeiling)
	defer cancel()
	cmd := exec.CommandContext(ctx, beside(c.program, "initdb"), "-D", c.data(h),
		"-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--wal-segsize="+strconv.Itoa(c.segment))
	cmd.Dir = h.dir
	log := h.file("initdb.log")
	made, err := start(cmd, h.as, log)
	if err != nil {
		return err
	}
	<-made.ended
	if !cmd.ProcessState.Success() {
		return fmt.Errorf("initdb: %s\n%s", cmd.ProcessState, tail(log))
	}
	return nil
}

func (c *cluster) launch(ctx context.Context, p *instance) (*process, error) {
	args := []string{"-D", c.data(p.serverDir), "-p", strconv.Itoa(p.port)}
	for _, o := range append(c.options, "cluster_name="+p.name()) {
		args = append(args, "-c", o)
	}
	cmd := exec.Command(c.program, args...) //nolint:noctx // it outlives the context that bounds its start
	cmd.Dir = p.serverDir.dir
	if len(c.env) > 0 {
		cmd.Env = append(os.Environ(), c.env...)
	}
	return startUntil(ctx, cmd, p.serverDir.as, p.log(), speaksSQL(p.url(), p.name()+"/postgres"))
}

func (c *cluster) url(addr string) string {
	return "postgres://postgres@" + addr + "/postgres?sslmode=disable"
}

// beside is another program of the same installation.
func beside(program, name string) string {
	if direct, err := filepath.EvalSymlinks(program); err == nil {
		program = direct
	}
	path := filepath.Join(filepath.Dir(program), name)
	if _, err := os.Stat(path); err != nil {
		return name
	}
	return path
}
