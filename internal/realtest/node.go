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

// node is how a RabbitMQ is started. It has two programs: the broker itself, and
// the register of names (epmd) without which an Erlang program with a name does
// not start. The register is the broker's own, on a port of its own, and ends
// with it; left to itself, the broker would start one that stays.
type node struct {
	program  string
	settings []string // name = value
}

func newNode(program string, settings []string) launcher {
	return &node{program: program, settings: settings}
}

// prepare sees to it that no plugin is enabled.
func (n *node) prepare(_ context.Context, h *home) error {
	return h.write("enabled_plugins", "[].\n")
}

func (n *node) launch(ctx context.Context, p *instance) (*process, error) {
	lines := append([]string{
		"listeners.tcp.1 = " + p.addr(),
		"disk_free_limit.absolute = 1MB",
	}, n.settings...)
	if err := p.home.write("rabbitmq.conf", strings.Join(lines, "\n")+"\n"); err != nil {
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
	cmd.Dir = p.home.dir
	cmd.Env = append(brokerEnv(p), "ERL_EPMD_PORT="+strconv.Itoa(at), "RABBITMQ_DIST_PORT="+strconv.Itoa(between))
	proc, err := startUntil(ctx, cmd, p.home.as, p.log(), speaksAMQP(p.url(), p.name()))
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

// url is that of the user whom a new RabbitMQ has, and lets in from this machine
// alone.
func (n *node) url(addr string) string { return "amqp://guest:guest@" + addr + "/" }

// brokerEnv is all that a broker finds in its environment. What it is silent
// about would come from the system's own RabbitMQ.
func brokerEnv(p *instance) []string {
	h := p.home
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
		// For the helpers it starts, too: no register that stays.
		"ERL_AFLAGS=-start_epmd false",
		"ERL_CRASH_DUMP_BYTES=0",
	}
}

// startRegister starts the register of names, and says at which port.
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
		// Without -d it ends without a word where the port is taken.
		cmd := exec.Command(found.program, "-d", "-port", strconv.Itoa(port), "-address", "127.0.0.1") //nolint:noctx // as the broker's
		// All that work for a home have its name on their command line.
		cmd.Args[0] = p.home.file("epmd")
		cmd.Dir = p.home.dir
		proc, err = startUntil(ctx, cmd, p.home.as, p.home.file(fmt.Sprintf("epmd-%d.log", port)), listens(port))
		return err
	})
	return proc, at, err
}

// listens is the sign of a server without an identity: it accepts connections.
func listens(port int) sign {
	return sign{ask: func(ctx context.Context) (string, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return "", fmt.Errorf("connect: %w", err)
		}
		return "", conn.Close()
	}}
}

// speaksAMQP is the sign of a broker whose node has that name: it has opened its
// default virtual host, and has said so.
func speaksAMQP(url, name string) sign {
	return sign{want: name, ask: func(ctx context.Context) (string, error) {
		conn, err := dialAMQP(ctx, url)
		if err != nil {
			return "", err
		}
		cluster, _ := conn.Properties["cluster_name"].(string)
		node, _, _ := strings.Cut(cluster, "@")
		return node, conn.Close()
	}}
}

// dialAMQP connects. When ctx ends before that is done, it gives up.
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
