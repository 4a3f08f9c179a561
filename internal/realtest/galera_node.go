package realtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// galeraGroup is what the nodes of a cluster have in common.
type galeraGroup struct {
	name  string
	ports []galeraPorts
}

// galeraPorts are the ports at which a node talks to other nodes.
type galeraPorts struct{ group, state, files int }

func freeGaleraPorts(ctx context.Context) (galeraPorts, error) {
	var p galeraPorts
	for _, port := range []*int{&p.group, &p.state, &p.files} {
		var err error
		if *port, err = freePort(ctx); err != nil {
			return p, err
		}
	}
	return p, nil
}

// galeraNode describes how a node is started.
type galeraNode struct {
	mariadb *mariadbServer
	library string
	group   *galeraGroup
	number  int
	alone   bool // it is the first of a new cluster
}

func (g *galeraNode) prepare(ctx context.Context, h *serverDir) error {
	return g.mariadb.prepare(ctx, h)
}

func (g *galeraNode) url(addr string) string { return g.mariadb.url(addr) }

// seed makes the files of a node that was a cluster of its own.
func (g *galeraNode) seed(ctx context.Context, p *instance) error {
	if err := g.prepare(ctx, p.serverDir); err != nil {
		return err
	}
	g.alone = true
	err := onFreePort(ctx, func(port int) error {
		p.port = port
		var err error
		if g.group.ports[g.number], err = freeGaleraPorts(ctx); err != nil {
			return err
		}
		return p.startOnce(ctx)
	})
	g.alone = false
	if err != nil {
		return err
	}
	if err := p.stop(syscall.SIGTERM); err != nil { //nolint:contextcheck // its end has a limit of its own
		return err
	}
	if err := os.Remove(g.mariadb.data(p.serverDir) + "/galera.cache"); err != nil {
		return fmt.Errorf("remove cache: %w", err)
	}
	return g.join(p.serverDir)
}

// copyOf copies the files of the first node.
func (g *galeraNode) copyOf(ctx context.Context, h, first *serverDir) error {
	cmd := exec.CommandContext(ctx, "cp", "-a", g.mariadb.data(first), g.mariadb.data(h))
	log := h.file("copy.log")
	made, err := start(cmd, h.as, log)
	if err != nil {
		return err
	}
	<-made.ended
	if !cmd.ProcessState.Success() {
		return fmt.Errorf("copy files: %s\n%s", cmd.ProcessState, tail(log))
	}
	return g.join(h)
}

// join makes the node a member of a cluster of which all nodes had failed. Such a
// cluster goes on once all its members are back, without a first node; each member
// finds the others in gvwstate.dat.
func (g *galeraNode) join(h *serverDir) error {
	id := func(node int) string { return fmt.Sprintf("%08d-0000-11f0-8000-000000000000", node+1) }
	lines := []string{"my_uuid: " + id(g.number), "#vwbeg", "view_id: 3 " + id(0) + " 1", "bootstrap: 0"}
	for i := range g.group.ports {
		lines = append(lines, "member: "+id(i)+" 0")
	}
	return h.write("data/gvwstate.dat", strings.Join(append(lines, "#vwend"), "\n")+"\n")
}

func (g *galeraNode) launch(ctx context.Context, p *instance) (*process, error) {
	args := append(g.mariadb.args(p), g.args()...)
	if g.alone {
		args = append(args, "--wsrep-new-cluster")
	} else {
		position, err := g.position(ctx, p, args)
		if err != nil {
			return nil, err
		}
		args = append(args, "--wsrep-start-position="+position)
	}
	cmd := exec.Command(g.mariadb.program, args...) //nolint:noctx // it outlives the context that bounds its start
	cmd.Dir = p.serverDir.dir
	return startUntil(ctx, cmd, p.serverDir.as, p.log(), isSynced(p.url(), g.mariadb.data(p.serverDir)+"/"))
}

func (g *galeraNode) args() []string {
	own := g.group.ports[g.number]
	at := func(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
	members := make([]string, 0, len(g.group.ports))
	for _, p := range g.group.ports {
		if !g.alone {
			members = append(members, at(p.group))
		}
	}
	return []string{
		"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--wsrep-on=ON", "--wsrep-provider=" + g.library,
		"--wsrep-cluster-name=" + g.group.name, "--wsrep-node-name=node-" + strconv.Itoa(g.number+1),
		"--wsrep-cluster-address=gcomm://" + strings.Join(members, ","), "--wsrep-node-address=" + at(own.group),
		"--wsrep-sst-method=rsync", "--wsrep-sst-receive-address=" + at(own.files),
		"--wsrep-provider-options=base_port=" + strconv.Itoa(own.group) + ";ist.recv_addr=" + at(own.state) +
			";gmcast.listen_addr=tcp://" + at(own.group) + ";gcache.size=16M;gcache.page_size=16M",
	}
}

// recovered is how a server logs the last transaction that its files have.
var recovered = regexp.MustCompile(`Recovered position: (\S+)`)

// position returns the last transaction that the node's files have. A node that was
// killed has not written it where a node looks for it.
func (g *galeraNode) position(ctx context.Context, p *instance, args []string) (string, error) {
	cmd := exec.CommandContext(ctx, g.mariadb.program, append(args, "--wsrep-recover")...)
	cmd.Dir = p.serverDir.dir
	log := p.serverDir.file(fmt.Sprintf("recover-%d.log", p.starts))
	looked, err := start(cmd, p.serverDir.as, log)
	if err != nil {
		return "", err
	}
	<-looked.ended
	text, err := os.ReadFile(log)
	if err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	found := recovered.FindSubmatch(text)
	if found == nil {
		return "", errors.New("the server does not find its position: " + tail(log))
	}
	return string(found[1]), nil
}

// isSynced is the probe of a node by the directory of its files.
func isSynced(url, data string) readinessProbe {
	return readinessProbe{want: data + " Synced", ask: func(ctx context.Context) (string, error) {
		c, err := mysqlConfig(url)
		if err != nil {
			return "", err
		}
		var directory, name, state string
		err = withMySQL(ctx, c, func(ctx context.Context, db *sql.DB) error {
			if err := db.QueryRowContext(ctx, "SHOW VARIABLES LIKE 'datadir'").Scan(&name, &directory); err != nil {
				return fmt.Errorf("read directory: %w", err)
			}
			return db.QueryRowContext(ctx, "SHOW STATUS LIKE 'wsrep_local_state_comment'").Scan(&name, &state)
		})
		return directory + " " + state, err
	}}
}
