package realtest_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// mysqlProxied is a database with an empty table "kept", behind a proxy. The parameters
// are for the connections through it.
func mysqlProxied(t *testing.T, parameters string) (p *realtest.Proxy, direct, through *sql.DB) {
	t.Helper()
	return mysqlProxiedAt(t, realtest.MariaDB(t), parameters)
}

func mysqlProxiedAt(t *testing.T, s *realtest.MariaDBServer, parameters string) (p *realtest.Proxy, direct, through *sql.DB) {
	t.Helper()
	dsn := s.Database(t)
	direct = openMySQL(t, dsn)
	must(t, direct, "CREATE TABLE kept (id int PRIMARY KEY, text longtext)")
	p = realtest.NewMySQLProxy(t, s.Addr())
	return p, direct, openMySQL(t, p.DSN(dsn)+parameters)
}

func wantKept(t *testing.T, db *sql.DB, want string) {
	t.Helper()
	check.Equal(t, scalar(t, db, "SELECT count(*) FROM kept"), want, "rows")
}

// TestMySQLProxyPassesEverythingOn: prepared statements, several statements in one
// request, and errors.
func TestMySQLProxyPassesEverythingOn(t *testing.T) {
	t.Parallel()
	_, _, through := mysqlProxied(t, "?multiStatements=true")
	must(t, through, "INSERT INTO kept VALUES (1, NULL); INSERT INTO kept VALUES (2, 'a'); SELECT * FROM kept; DO 1")
	for id := 3; id < 10; id++ {
		check.Must(through.ExecContext(t.Context(), "INSERT INTO kept VALUES (?, ?)", id, strings.Repeat("x", 1<<20)))(t)
	}
	if _, err := through.ExecContext(t.Context(), "INSERT INTO kept VALUES (?, NULL)", 1); err == nil {
		t.Error("the server's error did not arrive")
	}
	prepared := check.Must(through.PrepareContext(t.Context(), "SELECT text FROM kept WHERE id > ? ORDER BY id"))(t)
	defer prepared.Close()
	for range 3 {
		rows := check.Must(prepared.QueryContext(t.Context(), 2))(t)
		n := 0
		for rows.Next() {
			n++
		}
		if err := rows.Err(); err != nil || n != 7 {
			t.Errorf("%d rows, %v, want 7", n, err)
		}
	}
}

// TestMySQLProxyPassesLargePackets: the protocol divides what is longer than 16 MB.
func TestMySQLProxyPassesLargePackets(t *testing.T) {
	t.Parallel()
	s := realtest.OwnMariaDB(t, "max-allowed-packet=64M")
	_, _, through := mysqlProxiedAt(t, s, "?maxAllowedPacket=0&interpolateParams=true")
	text := strings.Repeat("y", 17<<20)
	check.Must(through.ExecContext(t.Context(), "INSERT INTO kept VALUES (1, ?)", text))(t)
	if got := scalar(t, through, "SELECT text FROM kept"); got != text {
		t.Errorf("%d bytes are back, want %d", len(got), len(text))
	}
}

// TestReplyOfMariaDBIsDroppedOnce: the server executes the request, the client does not
// learn of it, and the next client does. It is so for each way to send a statement.
func TestReplyOfMariaDBIsDroppedOnce(t *testing.T) {
	t.Parallel()
	for name, parameters := range map[string]string{"prepared": "", "interpolated": "?interpolateParams=true"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, direct, through := mysqlProxied(t, parameters)
			must(t, through, "DO 1") // the connection is in the pool
			fault := p.EatReply(realtest.SQL("INSERT INTO kept"))
			if _, err := through.ExecContext(t.Context(), "INSERT INTO kept VALUES (?, NULL)", 1); err == nil {
				t.Error("the client received the reply")
			}
			fault.Wait(t)
			wantKept(t, direct, "1")
			if _, err := through.ExecContext(t.Context(), "INSERT INTO kept VALUES (?, NULL)", 2); err != nil {
				t.Errorf("a second reply: %v, want it to be passed on", err)
			}
			if fault.Disarm() {
				t.Error("the fault is armed still")
			}
		})
	}
}

// TestReplyOfMariaDBToCommitIsDropped: as a statement of its own, and as the last of
// several.
func TestReplyOfMariaDBToCommitIsDropped(t *testing.T) {
	t.Parallel()
	ways := map[string]func(context.Context, *sql.DB) error{
		"alone": func(ctx context.Context, db *sql.DB) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "INSERT INTO kept VALUES (1, NULL)"); err != nil {
				return err
			}
			return tx.Commit()
		},
		"last": func(ctx context.Context, db *sql.DB) error {
			_, err := db.ExecContext(ctx, "START TRANSACTION; INSERT INTO kept VALUES (1, NULL); COMMIT")
			return err
		},
	}
	for name, insert := range ways {
		for fate, arm := range map[string]func(*realtest.Proxy) (*realtest.Fault, string){
			"reply lost": func(p *realtest.Proxy) (*realtest.Fault, string) { return p.EatReply(realtest.Commit()), "1" },
			"end lost":   func(p *realtest.Proxy) (*realtest.Fault, string) { return p.EatReady(realtest.Commit()), "1" },
			"cut before": func(p *realtest.Proxy) (*realtest.Fault, string) { return p.CutBefore(realtest.Commit()), "0" },
			"cut after":  func(p *realtest.Proxy) (*realtest.Fault, string) { return p.CutAfter(realtest.Commit()), "1" },
		} {
			t.Run(name+" "+fate, func(t *testing.T) {
				t.Parallel()
				p, direct, through := mysqlProxied(t, "?multiStatements=true")
				fault, want := arm(p)
				check.Fails(t, insert(t.Context(), through), "the client received the reply")
				fault.Wait(t)
				wantKept(t, direct, want)
			})
		}
	}
}

// TestPreparingInMariaDBIsNotExecuting: a fault for a statement waits until it runs.
func TestPreparingInMariaDBIsNotExecuting(t *testing.T) {
	t.Parallel()
	p, direct, through := mysqlProxied(t, "")
	through.SetMaxOpenConns(1)
	fault := p.EatReply(realtest.SQL("INSERT INTO kept"))
	prepared, err := through.PrepareContext(t.Context(), "INSERT INTO kept VALUES (?, NULL)")
	check.Require(t, err, "prepare")
	defer prepared.Close()
	if _, err := prepared.ExecContext(t.Context(), 1); err == nil {
		t.Error("the client received the reply")
	}
	fault.Wait(t)
	wantKept(t, direct, "1")
}
