package realtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// node describes how a RabbitMQ broker is started. It has two programs: the broker,
// and the name register (epmd) that every named Erlang program needs. The register
// is started for this broker, on its own port, and ends with it; otherwise the
// broker would start a register that stays.
type node struct {
	program  string
	settings []string // name = value
}

func newNode(program string, settings []string) launcher {
	return &node{program: program, settings: settings}
}

// prepare disables all plugins.
func (n *node) prepare(_ context.Context, h *serverDir) error {
	return h.write("enabled_plugins", "[].\n")
}

func (n *node) launch(ctx context.Context, p *instance) (*process, error) {
	lines := append([]string{
		"listeners.tcp.1 = " + p.addr(),
		"disk_free_limit.absolute = 1MB",
	}, n.settings...)
	if err := p.serverDir.write("rabbitmq.conf", strings.Join(lines, "\n")+"\n"); err != nil {
		return nil, err
	}
	register, at, err := startRegister(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("start epmd: %w", err)
	}
	between, err := freePort(ctx)
	if err != nil {
		return nil, errors.Join(err, register.kill())
	}
	// The script passes its arguments on to Erlang, which takes any flag.
	cmd := exec.Command(n.program, "-realtest", p.name()) //nolint:noctx // it outlives the context that bounds its start
	cmd.Dir = p.serverDir.dir
	cmd.Env = append(brokerEnv(p), "ERL_EPMD_PORT="+strconv.Itoa(at), "RABBITMQ_DIST_PORT="+strconv.Itoa(between))
	proc, err := startUntil(ctx, cmd, p.serverDir.as, p.log(), speaksAMQP(p.url(), p.name()))
	select {
	case <-register.ended: // another process took its port and answered in its place
		err = errors.Join(errInUse, err, proc.kill())
	default:
	}
	if err != nil {
		return nil, errors.Join(err, register.kill())
	}
	return proc, nil
}

// url has the default user of a new RabbitMQ, which may connect from this machine
// only.
func (n *node) url(addr string) string { return "amqp://guest:guest@" + addr + "/" }

// brokerEnv is the complete environment of a broker. Other values would come from
// the system's own RabbitMQ.
func brokerEnv(p *instance) []string {
	h := p.serverDir
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir, "LANG=C.UTF-8",
		"RABBITMQ_NODENAME=" + p.name() + "@localhost",
		"RABBITMQ_CONFIG_FILE=" + h.file("rabbitmq.conf"),
		"RABBITMQ_CONF_ENV_FILE=" + h.file("none.conf"),
		"RABBITMQ_ADVANCED_CONFIG_FILE=" + h.file("none.config"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + h.file("enabled_plugins"),
		"RABBITMQ_MNESIA_BASE=" + h.file("data"),
		"RABBITMQ_LOG_BASE=" + h.dir,
		"RABBITMQ_LOGS=-",
		// The script becomes the broker, instead of waiting for it.
		"RUNNING_UNDER_SYSTEMD=true",
		// One processor, and connections from this machine only.
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 1:1 -kernel inet_dist_use_interface {127,0,0,1}",
		"ERL_EPMD_ADDRESS=127.0.0.1",
		// For its helper programs too: no register that stays.
		"ERL_AFLAGS=-start_epmd false",
		"ERL_CRASH_DUMP_BYTES=0",
	}
}

// startRegister starts the name register, and returns its port.
func startRegister(ctx context.Context, p *instance) (proc *process, at int, err error) {
	e := engine{program: "epmd", places: []string{
		"/usr/lib/erlang/bin", "/usr/lib64/erlang/bin", "/opt/homebrew/opt/erlang/bin", "/usr/local/opt/erlang/bin",
	}}
	found := thisMachine().find(e)
	if found == nil {
		return nil, 0, errors.New("it is not on this machine")
	}
	err = onFreePort(ctx, func(port int) error {
		at = port
		// Without -d it ends without an error if the port is in use.
		cmd := exec.Command(found.program, "-d", "-port", strconv.Itoa(port), "-address", "127.0.0.1") //nolint:noctx // as the broker's
		// All processes of a server directory have its name on their command line.
		cmd.Args[0] = p.serverDir.file("epmd")
		cmd.Dir = p.serverDir.dir
		proc, err = startUntil(ctx, cmd, p.serverDir.as, p.serverDir.file(fmt.Sprintf("epmd-%d.log", port)), listens(port))
		return err
	})
	return proc, at, err
}

// listens is the probe of a server without an identity: it accepts connections.
func listens(port int) readinessProbe {
	return readinessProbe{ask: func(ctx context.Context) (string, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return "", fmt.Errorf("connect: %w", err)
		}
		return "", conn.Close()
	}}
}

// speaksAMQP is the probe of a broker by its node name: the broker has opened its
// default virtual host.
func speaksAMQP(url, name string) readinessProbe {
	return readinessProbe{want: name, ask: func(ctx context.Context) (string, error) {
		conn, err := dialAMQP(ctx, url)
		if err != nil {
			return "", err
		}
		cluster, _ := conn.Properties["cluster_name"].(string)
		node, _, _ := strings.Cut(cluster, "@")
		return node, conn.Close()
	}}
}

// dialAMQP connects, and gives up when ctx ends.
func dialAMQP(ctx context.Context, url string) (*amqp.Connection, error) {
	opened := func() bool { return true }
	conn, err := amqp.DialConfig(url, amqp.Config{Dial: func(network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		opened = context.AfterFunc(ctx, func() { conn.Close() })
		return conn, nil
	}})
	opened()
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return conn, nil
}
