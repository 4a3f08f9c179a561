package realtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/check"
)

// Quorum is a PostgreSQL primary with two standbys for one test. A commit waits until
// one of the standbys has it on its disk. The servers wait for their disks too.
type Quorum struct {
	primary  *Server
	standbys []*Server
	servers  []*Server // all of them, in the order of their start
}

// replica describes a server that is a copy of a primary and follows it.
type replica struct {
	cluster

	primary *instance
	title   string // its application_name, which synchronous_standby_names has
}

// quorumSettings are for each server of a quorum, because each may become the primary.
func quorumSettings() []string {
	return []string{
		"fsync=on", "full_page_writes=on", "wal_level=replica", "hot_standby=on", "max_wal_senders=10", "wal_keep_size=64MB",
		"wal_retrieve_retry_interval=100ms", "synchronous_standby_names=ANY 1 (s1, s2)",
	}
}

// PostgresQuorum starts a primary and two standbys, which end with the test. Both
// standbys follow the primary when it returns. Settings are for all three servers, as
// those of [OwnPostgres].
func PostgresQuorum(tb testing.TB, settings ...string) *Quorum {
	tb.Helper()
	settings = append(quorumSettings(), settings...)
	q := &Quorum{primary: OwnPostgres(tb, settings...)}
	q.servers = append(q.servers, q.primary)
	for i := range 2 {
		copyOf := func(program string, settings []string) launcher {
			return &replica{
				cluster: cluster{program: program, options: append(defaultCluster(), settings...)},
				primary: q.primary.own, title: "s" + strconv.Itoa(i+1),
			}
		}
		q.standbys = append(q.standbys, &Server{ownHandle(tb, postgres(), copyOf, settings)})
	}
	q.servers = append(q.servers, q.standbys...)
	q.AwaitStandbys(tb)
	return q
}

// prepare copies the running primary, with the server's own functions for it: not every
// package of the server has pg_basebackup.
func (s *replica) prepare(ctx context.Context, h *serverDir) error {
	ctx, cancel := context.WithTimeout(ctx, startCeiling)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.primary.url())
	if err != nil {
		return fmt.Errorf("connect to the primary: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "select pg_backup_start('standby', true)"); err != nil {
		return fmt.Errorf("begin the copy: %w", err)
	}
	if err := copyData(s.primary.serverDir, h); err != nil {
		return fmt.Errorf("copy the primary: %w", err)
	}
	var label string
	if err := conn.QueryRow(ctx, "select labelfile from pg_backup_stop(false)").Scan(&label); err != nil {
		return fmt.Errorf("end the copy: %w", err)
	}
	return errors.Join(
		h.write("data/backup_label", label),
		h.write("data/standby.signal", ""),
		h.write("data/postgresql.auto.conf", "primary_conninfo = '"+s.conninfo(s.primary)+"'\n"),
	)
}

// copyData copies the files of a running PostgreSQL, except its log, which the standby
// gets from the primary, and what describes the running process.
func copyData(from, to *serverDir) error {
	source, target := os.DirFS(from.file("data")), to.file("data")
	return fs.WalkDir(source, ".", func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the server has removed it meanwhile
		}
		if err != nil {
			return err
		}
		if d.IsDir() {
			if err := os.Mkdir(filepath.Join(target, path), 0o700); err != nil {
				return err
			}
			return to.giveAway(filepath.Join("data", path))
		}
		if path == "postmaster.pid" || path == "postmaster.opts" || strings.HasPrefix(path, "pg_wal/") {
			return nil
		}
		text, err := fs.ReadFile(source, path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return to.write(filepath.Join("data", path), string(text))
	})
}

// conninfo is how the standby connects to a primary.
func (s *replica) conninfo(primary *instance) string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=postgres application_name=%s", primary.port, s.title)
}

// Primary returns the present primary.
func (q *Quorum) Primary() *Server { return q.primary }

// URL returns the address of a database of the primary for clients that follow a
// failover: it names all servers, and demands one that accepts writes.
func (q *Quorum) URL(tb testing.TB, database string) string {
	tb.Helper()
	u, err := url.Parse(database)
	check.Require(tb, err, "parse %q", database)
	hosts := make([]string, len(q.servers))
	for i, s := range q.servers {
		hosts[i] = s.Addr()
	}
	u.Host = strings.Join(hosts, ",")
	query := u.Query()
	query.Set("target_session_attrs", "read-write")
	query.Set("connect_timeout", "5")
	u.RawQuery = query.Encode()
	return u.String()
}

// AwaitStandbys waits until all running standbys follow the primary.
func (q *Quorum) AwaitStandbys(tb testing.TB) {
	tb.Helper()
	const read = `select count(*) >= $1 from pg_stat_replication where state = 'streaming' and sync_state = 'quorum'`
	Poll(tb, "the standbys", func() bool {
		var follow bool
		err := q.primary.row(tb, &follow, read, len(q.standbys))
		return err == nil && follow
	})
}

// Isolate stops both standbys in their tracks, so that no commit is confirmed until
// restore. Both may be called from any goroutine.
func (q *Quorum) Isolate() (restore func()) {
	standbys := slices.Clone(q.standbys)
	for _, s := range standbys {
		s.Pause()
	}
	return func() {
		for _, s := range standbys {
			s.Resume()
		}
	}
}

// Failover kills the primary and promotes the standby that has received most, as an
// operator must do: the other one may lack the last confirmed commit. The other
// standby follows the new primary when Failover returns.
func (q *Quorum) Failover(tb testing.TB) {
	tb.Helper()
	q.primary.Kill()
	q.Promote(tb)
}

// Promote is the second half of [Quorum.Failover]: the primary has been killed.
func (q *Quorum) Promote(tb testing.TB) {
	tb.Helper()
	for _, s := range q.standbys {
		Poll(tb, "a standby to write all that it received", func() bool { // its receiver does so when the primary has ended
			var ended bool
			err := s.row(tb, &ended, `select not exists (select from pg_stat_wal_receiver)`)
			return err == nil && ended
		})
	}
	received := make(map[*Server]int64)
	for _, s := range q.standbys {
		var at int64
		check.Require(tb, s.row(tb, &at, `select pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')::bigint`), "read how much a standby has received")
		received[s] = at
	}
	next := slices.MaxFunc(q.standbys, func(a, b *Server) int { return int(received[a] - received[b]) })
	var promoted bool
	if err := next.row(tb, &promoted, `select pg_promote()`); err != nil || !promoted {
		tb.Fatalf("promote a standby: %v", err)
	}
	q.primary = next
	q.standbys = slices.DeleteFunc(slices.Clone(q.standbys), func(s *Server) bool { return s == next })
	for _, s := range q.standbys {
		follower, ok := s.own.launcher.(*replica)
		if !ok {
			tb.Fatal("the first primary cannot follow another one")
		}
		s.exec(tb, "alter system set primary_conninfo = '"+follower.conninfo(next.own)+"'")
		s.exec(tb, "select pg_reload_conf()")
	}
	q.AwaitStandbys(tb)
}
