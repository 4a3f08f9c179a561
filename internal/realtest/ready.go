package realtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// ceiling is how long a server may take to answer; a busy machine takes seconds.
const ceiling = 60 * time.Second

// errInUse marks a server that ended because somebody has its port or its files.
var errInUse = errors.New("in use")

// await asks until a server that speaks PostgreSQL's protocol lets one connect
// at url.
func await(ctx context.Context, proc *process, url, log string) error {
	ask := time.NewTicker(10 * time.Millisecond)
	defer ask.Stop()
	for {
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ask.C:
		case <-proc.ended:
			return endedEarly(proc, tail(log))
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w\n%s", err, tail(log))
		}
	}
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

// freePort is a port that nobody listened on a moment ago.
func freePort(ctx context.Context) (int, error) {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
