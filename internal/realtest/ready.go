package realtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// ceiling is how long a server may take to answer; a busy machine takes seconds.
const ceiling = 60 * time.Second

// errInUse marks a server that ended because somebody has its port or its files.
var errInUse = errors.New("in use")

// await asks until a server that speaks PostgreSQL's protocol answers at url, and
// is the one it should be: somebody else's may have taken the port.
func await(ctx context.Context, proc *process, url, identity, log string) error {
	ask := time.NewTicker(10 * time.Millisecond)
	defer ask.Stop()
	for {
		got, err := identify(ctx, url)
		if err == nil && got == identity {
			return nil
		}
		select {
		case <-ask.C:
		case <-proc.ended:
			return endedEarly(proc, tail(log))
		case <-ctx.Done():
			return fmt.Errorf("%q and not %q answers: %w\n%s", got, identity, err, tail(log))
		}
	}
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

// endedEarly says why a server ended instead of answering.
func endedEarly(proc *process, log string) error {
	err := fmt.Errorf("the server ended: %s\n%s", proc.cmd.ProcessState, log)
	if strings.Contains(log, "in use") || strings.Contains(log, "already exists") {
		return fmt.Errorf("%w: %w", errInUse, err)
	}
	return err
}

// onFreePort starts a server on a port that is free. Somebody may take the port
// before the server does; then another is tried.
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

// freePort is a port that nobody listened on a moment ago. It is below those that
// systems give to connections, because a server that was killed is to get its
// port again, and because a client that asks a dead server again and again would
// otherwise be connected to itself one day.
func freePort(ctx context.Context) (int, error) {
	const from, to, tries = 15_000, 32_000, 100
	var listen net.ListenConfig
	var err error
	for range tries {
		port := from + rand.IntN(to-from)
		var l net.Listener
		if l, err = listen.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}
