package realtest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/check"
)

// pgbouncer runs in front of a server of the test, so it is always a program
// on this machine.
func pgbouncer() engine {
	return engine{
		name:     "pgbouncer",
		program:  "pgbouncer",
		places:   []string{"/usr/sbin", "/opt/homebrew/opt/pgbouncer/bin", "/usr/local/opt/pgbouncer/bin"},
		packages: "pgbouncer",
	}
}

// PgBouncer starts a PgBouncer in transaction mode in front of the database at
// server, with at most 20 connections to it, and returns the address of that
// database through it. It ends with the test.
func PgBouncer(tb testing.TB, server string) string {
	tb.Helper()
	at := thisMachine().need(tb, pgbouncer())
	h, err := newServerDir(baseDir())
	check.Require(tb, err, "start PgBouncer")
	tb.Cleanup(func() {
		check.NoError(tb, h.close(), "end PgBouncer")
	})
	var through string
	err = onFreePort(tb.Context(), func(port int) error {
		u, err := url.Parse(server)
		if err != nil {
			return fmt.Errorf("parse %q: %w", server, err)
		}
		u.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		through = u.String()
		return startPgBouncer(tb.Context(), h, at.program, server, through)
	})
	check.Require(tb, err, "start PgBouncer")
	return through
}

// startPgBouncer starts it so that the address through leads to server. It is
// ready when it returns.
func startPgBouncer(ctx context.Context, h *serverDir, program, server, through string) error {
	ctx, cancel := context.WithTimeout(ctx, startCeiling)
	defer cancel()
	to, err := pgx.ParseConfig(server)
	if err != nil {
		return fmt.Errorf("parse %q: %w", server, err)
	}
	at, err := pgx.ParseConfig(through)
	if err != nil {
		return fmt.Errorf("parse %q: %w", through, err)
	}
	identity, err := identify(ctx, server)
	if err != nil {
		return err
	}
	if err := h.write("pgbouncer.ini", bouncerSettings(to, at.Port)); err != nil {
		return err
	}
	cmd := exec.Command(program, h.file("pgbouncer.ini")) //nolint:noctx // it outlives the context that bounds its start
	cmd.Dir = h.dir
	_, err = startUntil(ctx, cmd, h.as, h.file("pgbouncer.log"), speaksSQL(through, identity))
	return err
}

// bouncerSettings lets everybody in and leads them to one database.
func bouncerSettings(to *pgx.ConnConfig, port uint16) string {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	database := fmt.Sprintf("host=%s port=%d dbname=%s user=%s",
		quote(to.Host), to.Port, quote(to.Database), quote(to.User))
	if to.Password != "" {
		database += " password=" + quote(to.Password)
	}
	return fmt.Sprintf(`[databases]
* = %s

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 20
max_client_conn = 1000
`, database, port)
}
