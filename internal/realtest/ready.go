package realtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/check"
)

// ceiling is how long a server may take to answer, or to end.
const ceiling = 60 * time.Second

// startCeiling is how long a server may take to start. A RabbitMQ needs seconds
// of a processor, which a busy machine gives in a minute.
const startCeiling = 3 * time.Minute

// errInUse marks a server that ended because another process has its port or its
// files.
var errInUse = errors.New("in use")

// readinessProbe recognizes a server that is ready.
type readinessProbe struct {
	ask  func(ctx context.Context) (string, error) // returns the server's identity
	want string
}

// startUntil starts cmd as start does, and waits until it gives its sign. What
// does not is killed.
func startUntil(ctx context.Context, cmd *exec.Cmd, as *syscall.Credential, log string, s readinessProbe) (*process, error) {
	proc, err := start(cmd, as, log)
	if err != nil {
		return nil, err
	}
	if err := await(ctx, proc, s, log); err != nil {
		return nil, errors.Join(err, proc.kill())
	}
	return proc, nil
}

// await waits until the server answers with the right identity, because another
// server may have taken the port.
func await(ctx context.Context, proc *process, s readinessProbe, log string) error {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // another server may never answer
		select {
		case <-proc.ended:
			cancel()
		case <-asking.Done():
		}
	}()
	for {
		got, err := s.ask(asking)
		if err == nil && got == s.want {
			return nil
		}
		select {
		case <-again.C:
		case <-proc.ended:
			return endedEarly(proc, tail(log))
		case <-ctx.Done():
			return fmt.Errorf("%q and not %q answers: %w\n%s", got, s.want, err, tail(log))
		}
	}
}

// speaksSQL is the sign of a server, or of a PgBouncer before it.
func speaksSQL(url, identity string) readinessProbe {
	return readinessProbe{want: identity, ask: func(ctx context.Context) (string, error) { return identify(ctx, url) }}
}

// identify asks which server and database one gets to at url. It makes do with
// what PgBouncer passes on.
func identify(ctx context.Context, url string) (string, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var identity string
	err = conn.QueryRow(ctx, "select current_setting('cluster_name') || '/' || current_database()",
		pgx.QueryExecModeSimpleProtocol).Scan(&identity)
	if err != nil {
		return "", fmt.Errorf("ask who it is: %w", err)
	}
	return identity, nil
}

// inUse matches the servers' messages that their port or files are in use.
var inUse = regexp.MustCompile(`in use|already exists|already a epmd|eaddrinuse|dist_port_already_used`)

// endedEarly says why a server ended instead of answering.
func endedEarly(proc *process, log string) error {
	err := fmt.Errorf("the server ended: %s\n%s", proc.cmd.ProcessState, log)
	if inUse.MatchString(log) {
		return fmt.Errorf("%w: %w", errInUse, err)
	}
	return err
}

// onFreePort starts a server on a free port. If another process takes the port
// first, it tries another one.
func onFreePort(ctx context.Context, start func(port int) error) error {
	const tries = 5
	var err error
	for range tries {
		port, free := freePort(ctx)
		if free != nil {
			return free
		}
		if err = start(port); !errors.Is(err, errInUse) {
			break
		}
	}
	return err
}

// FreeAddr returns an address of this machine without a listener, with a port of freePort.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	port := check.Must(freePort(tb.Context()))(tb)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// freePort returns a port without a listener, which no other process gets from freePort while
// this one runs. It is below the range of ephemeral ports. So a killed server can get its port
// again, and a client that keeps connecting to a dead server cannot connect to itself.
func freePort(ctx context.Context) (int, error) {
	const from, to, tries = 15_000, 32_000, 100
	var err error
	for range tries {
		port := from + rand.IntN(to-from)
		if err = reservations.reserve(ctx, port); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}

// reservations are the ports that this process got from freePort.
var reservations portReservations //nolint:gochecknoglobals // other processes of the tests must see them until this one ends

// portReservations keep the UDP port of each TCP port, with one descriptor each, until the process
// ends. The servers use TCP only.
type portReservations struct {
	mu   sync.Mutex
	open []net.PacketConn
}

// reserve fails if the port is reserved, or if a program listens there.
func (r *portReservations) reserve(ctx context.Context, port int) error {
	var listen net.ListenConfig
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	reserved, err := listen.ListenPacket(ctx, "udp", addr)
	if err != nil {
		return err
	}
	l, err := listen.Listen(ctx, "tcp", addr)
	if err != nil {
		return errors.Join(err, reserved.Close())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = append(r.open, reserved)
	return l.Close()
}
