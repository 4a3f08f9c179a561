package failures_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	migrate "github.com/semelgo/semel/migrate/mysql"
	"github.com/semelgo/semel/store/mysql"
	"github.com/semelgo/semel/store/storetest"
)

// TestGalera: each new connection of the store leads to another node.
func TestGalera(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Attr("engine", "mysql")
	cluster := realtest.Galera(t)
	failureClasses(t, onSubject(onGalera(t, cluster, cluster.Database(t)), 2*time.Second))
}

// onGalera returns a store in a new database of a cluster, which has a name for each node. Its connections lead to the
// nodes in turn, and to the next one if a node does not accept connections.
func onGalera(t *testing.T, c *realtest.GaleraCluster, nodes []string) storetest.Subject[*sql.Tx] {
	t.Helper()
	config := check.Must(driver.ParseDSN(nodes[0]))(t)
	config.Logger = &driver.NopLogger{}
	var next atomic.Int64
	config.DialFunc = func(ctx context.Context, network, _ string) (net.Conn, error) {
		var conn net.Conn
		err := context.Cause(ctx)
		for range c.Nodes() {
			n := c.Nodes()[int(next.Add(1))%len(c.Nodes())]
			if conn, err = new(net.Dialer).DialContext(ctx, network, n.Addr()); err == nil {
				break
			}
		}
		return conn, err
	}
	db := check.Must(mysql.OpenConfig(config))(t)
	t.Cleanup(func() { db.Close() })
	db.SetMaxIdleConns(16)
	check.Require(t, migrate.Up(t.Context(), db, migrate.Options{}))
	check.Must(db.ExecContext(t.Context(), `CREATE TABLE effects (id BIGINT AUTO_INCREMENT PRIMARY KEY, k VARCHAR(255) NOT NULL)`))(t)
	s := check.Must(mysql.New(db, mysql.Options{}))(t)
	return storetest.Subject[*sql.Tx]{
		Store: s,
		Effect: func(ctx context.Context, tx *sql.Tx, key string) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO effects (k) VALUES (?)`, key)
			return err
		},
		Effects: func(key string) (n int) {
			row := db.QueryRowContext(context.WithoutCancel(t.Context()), `SELECT count(*) FROM effects WHERE k = ?`, key)
			check.NoError(t, row.Scan(&n), "count effects")
			return n
		},
	}
}

// TestGaleraConflicts: another node commits a change of a row that an open transaction has
// changed. The cluster rolls the transaction back. Its next statement or its COMMIT shows it
// (error 1213), and the handler runs again.
func TestGaleraConflicts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Attr("engine", "mysql")
	cluster := realtest.Galera(t)
	sources := cluster.Database(t)
	subject := onGalera(t, cluster, sources)
	w := newFixture(t, onSubject(subject, 2*time.Second), "conflict")
	nodes := make(map[string]*sql.DB) // by port
	ports := make([]string, len(sources))
	for i, source := range sources {
		_, ports[i], _ = net.SplitHostPort(cluster.Nodes()[i].Addr())
		nodes[ports[i]] = check.Must(mysql.Open(source))(t)
		t.Cleanup(func() { nodes[ports[i]].Close() })
	}
	mustExec := func(port, text string, args ...any) {
		check.Must(nodes[port].ExecContext(t.Context(), text, args...))(t)
	}
	mustExec(ports[0], `CREATE TABLE accounts (name VARCHAR(20) PRIMARY KEY, n INT NOT NULL)`)
	op := semel.Define(w.op("conflict"), semel.OperationOptions[string]{})
	for i, at := range []string{"statement", "commit"} {
		mustExec(ports[0], `INSERT INTO accounts VALUES (?, 0)`, at)
		runs, n := 0, 0
		_, _, err := semel.DoTx(t.Context(), w.engine, op.Call(semel.ScopeOf("ann"), at, "in"), func(ctx context.Context, tx *sql.Tx) (string, error) {
			runs++
			if _, err := tx.ExecContext(ctx, `UPDATE accounts SET n = n + 1 WHERE name = ?`, at); err != nil || runs > 1 {
				return "", errors.Join(err, subject.Effect(ctx, tx, at))
			}
			if at == "commit" {
				check.NoError(t, subject.Effect(ctx, tx, at))
			}
			var here string
			if err := tx.QueryRowContext(ctx, `SELECT @@port`).Scan(&here); err != nil {
				return "", err
			}
			elsewhere := ports[(slices.Index(ports, here)+1)%len(ports)]
			mustExec(elsewhere, `UPDATE accounts SET n = n + 10 WHERE name = ?`, at)
			// A connection of this node waits until the node has applied that.
			if err := nodes[here].QueryRowContext(ctx, `SELECT n FROM accounts WHERE name = ?`, at).Scan(&n); err != nil || n != 10 {
				t.Errorf("%s: the other node's change is not here: %d, %v", at, n, err)
			}
			if at == "commit" {
				return "", nil
			}
			err := subject.Effect(ctx, tx, at)
			if deadlock := new(driver.MySQLError); !errors.As(err, &deadlock) || deadlock.Number != 1213 {
				t.Errorf("the next statement: %v, want error 1213", err)
			}
			return "", err
		})
		check.NoError(t, err, "%s", at)
		check.Equal(t, runs, 2, "%s: runs", at)
		check.Equal(t, w.seen.count(event.Retried), i+1, "%s: transactions that ran again", at)
		check.Equal(t, subject.Effects(at), 1, "%s: effects", at)
		check.Require(t, nodes[ports[0]].QueryRowContext(t.Context(), `SELECT n FROM accounts WHERE name = ?`, at).Scan(&n))
		check.Equal(t, n, 11, "%s: the row", at)
	}
}

// TestGaleraNodeKilledUnderLoad kills each node in turn while callers run operations, each
// key from two goroutines. Every key succeeds in the end, with one effect and one result.
func TestGaleraNodeKilledUnderLoad(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Attr("engine", "mysql")
	cluster := realtest.OwnGalera(t)
	subject := onGalera(t, cluster, cluster.Database(t))
	w := newFixture(t, onSubject(subject, 2*time.Second), "galera")
	op := semel.Define(w.op("inline"), semel.OperationOptions[string]{})
	do := func(key, caller string) (string, error) {
		result, _, err := semel.DoTx(t.Context(), w.engine, op.Call(semel.ScopeOf("ann"), key, "in"),
			func(ctx context.Context, tx *sql.Tx) (string, error) {
				return "by " + caller, subject.Effect(ctx, tx, key)
			})
		return result, err
	}
	for i, node := range cluster.Nodes() {
		var stop atomic.Bool
		var callers sync.WaitGroup
		results := make([]sync.Map, 2)
		for caller := range 8 {
			callers.Go(func() {
				for n := 0; !stop.Load() || n == 0; n++ {
					key := fmt.Sprintf("node %d, pair %d, %d", i, caller/2, n)
					var result string
					realtest.Poll(t, key+" succeeds", func() bool {
						var err error
						result, err = do(key, fmt.Sprint(caller))
						return err == nil
					})
					results[caller%2].Store(key, result)
				}
			})
		}
		ran := func() (n int) {
			results[0].Range(func(any, any) bool { n++; return true })
			return n
		}
		realtest.Poll(t, "some operations before the kill", func() bool { return ran() >= 20 })
		node.Kill()
		killed := ran()
		realtest.Poll(t, "some operations without the node", func() bool { return ran() >= killed+20 })
		node.Start(t)
		stop.Store(true)
		callers.Wait()
		results[0].Range(func(key, result any) bool {
			if other, ok := results[1].Load(key); ok && other != result {
				t.Errorf("%s: %q and %q", key, result, other)
			}
			check.Equal(t, subject.Effects(key.(string)), 1, "%s: effects", key)
			return true
		})
	}
}
