package failures_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/mysql"
)

// mariadbRounds is how often each reply is lost.
const mariadbRounds = 6

// mariadbFixture is a fixture whose store is reached through a proxy.
type mariadbFixture struct {
	*fixture[*sql.Tx]

	proxy  *realtest.Proxy
	direct *sql.DB // not through the proxy
}

func newMariaDBFixture(t *testing.T) *mariadbFixture {
	t.Helper()
	t.Attr("engine", "mysql")
	server := realtest.MariaDB(t)
	name := server.Database(t)
	proxy := realtest.NewMySQLProxy(t, server.Addr())
	w := newFixture(t, onSubject(ledger.MariaDB(t, name, proxy.DSN(name)), 2*time.Second), "mariadb")
	direct := check.Must(mysql.Open(name))(t)
	t.Cleanup(func() { direct.Close() })
	return &mariadbFixture{w, proxy, direct}
}

// inTx runs one operation with that handler.
func (w *mariadbFixture) inTx(ctx context.Context, by handlerMode, key string, handler func(context.Context, *sql.Tx) error) (string, bool, error) {
	o := semel.OperationOptions[string]{}
	if by == leased {
		o.Policy, o.Lease = semel.Atomic(), w.Lease*100
	}
	call := semel.Define(w.op(string(by)), o).Call(semel.ScopeOf("ann"), key, "in")
	return semel.DoTx(ctx, w.engine, call, func(ctx context.Context, tx *sql.Tx) (string, error) {
		return "done " + key, handler(ctx, tx)
	})
}

func (w *mariadbFixture) withEffect(ctx context.Context, by handlerMode, key string) (string, bool, error) {
	return w.inTx(ctx, by, key, func(ctx context.Context, tx *sql.Tx) error { return w.effect(ctx, tx, key) })
}

// wantOnce requires that the call returns its own success, a retry its replay, and that
// it had one effect.
func (w *mariadbFixture) wantOnce(t *testing.T, by handlerMode, key string) {
	t.Helper()
	for i := range 2 {
		v, replayed, err := retryWhileBusy(t, func() (string, bool, error) { return w.withEffect(t.Context(), by, key) })
		if v != "done "+key || replayed != (i == 1) || err != nil {
			t.Errorf("call %d of %s: %q, replayed %v, %v, want its success, then a replay", i, key, v, replayed, err)
		}
	}
	w.wantEffects(t, key, 1)
}

// ends matches the statement that ends a handler's transaction.
func ends(request []byte) bool {
	return strings.Contains(string(request), "SAVEPOINT semelrun") && realtest.Commit()(request)
}

// A caller that loses the reply to its COMMIT finds out that it has committed.
func TestMariaDBReplyToTheCommitIsLost(t *testing.T) {
	t.Parallel()
	w := newMariaDBFixture(t)
	for i := range mariadbRounds {
		for _, by := range handlerModes() {
			fault := w.proxy.EatReply(ends)
			w.wantOnce(t, by, fmt.Sprint(by, i))
			fault.Wait(t)
		}
	}
	check.Equal(t, w.seen.count(event.AmbiguousYes), 2*mariadbRounds, "ambiguous commits resolved as committed")
}

// A caller whose COMMIT never arrived finds out that it has not committed.
func TestMariaDBCommitIsLost(t *testing.T) {
	t.Parallel()
	w := newMariaDBFixture(t)
	for i := range mariadbRounds {
		for _, by := range handlerModes() {
			key := fmt.Sprint(by, i)
			fault := w.proxy.CutBefore(ends)
			_, _, err := w.withEffect(t.Context(), by, key)
			fault.Wait(t)
			if err == nil || semel.VerdictOf(err) != store.NotCommitted {
				t.Errorf("%s: %v, want that it is proven not to have committed", key, err)
			}
			w.wantEffects(t, key, 0)
			w.wantOnce(t, by, key)
		}
	}
}

// A handler whose connection is killed has no effect, and its retry has one.
func TestMariaDBKilledHandler(t *testing.T) {
	t.Parallel()
	w := newMariaDBFixture(t)
	for _, by := range handlerModes() {
		key := fmt.Sprint(by)
		var once sync.Once
		_, _, err := w.inTx(t.Context(), by, key, func(ctx context.Context, tx *sql.Tx) (err error) {
			once.Do(func() {
				var id int64
				if err = errors.Join(w.effect(ctx, tx, key), tx.QueryRowContext(ctx, `SELECT connection_id()`).Scan(&id)); err == nil {
					_, err = w.direct.ExecContext(ctx, fmt.Sprintf(`KILL %d`, id))
				}
			})
			return errors.Join(err, w.effect(ctx, tx, key))
		})
		if err == nil && w.effects(key) == 1 {
			continue // the engine ran the handler again
		}
		if semel.VerdictOf(err) != store.NotCommitted || w.effects(key) != 0 {
			t.Errorf("%s: %v with %d effects, want a success with one effect, or a proof that there was none", by, err, w.effects(key))
		}
		w.wantOnce(t, by, key)
	}
}

// The database aborts one of two handlers that wait for each other. The handler runs
// again, and both callers get their success.
func TestMariaDBDeadlockedHandlersBothSucceed(t *testing.T) {
	t.Parallel()
	w := newMariaDBFixture(t)
	for _, text := range []string{`CREATE TABLE accounts (name CHAR(1) PRIMARY KEY, n INT NOT NULL)`, `INSERT INTO accounts VALUES ('a', 0), ('b', 0)`} {
		check.Must(w.direct.ExecContext(t.Context(), text))(t)
	}
	for _, by := range handlerModes() {
		var met, both sync.WaitGroup // both have locked their first row before one locks its second
		met.Add(2)
		for _, order := range []string{"ab", "ba"} {
			var arrive sync.Once
			both.Go(func() {
				_, _, err := w.inTx(t.Context(), by, order, func(ctx context.Context, tx *sql.Tx) error {
					for name := range strings.SplitSeq(order, "") {
						if _, err := tx.ExecContext(ctx, `UPDATE accounts SET n = n + 1 WHERE name = ?`, name); err != nil {
							return err
						}
						arrive.Do(met.Done)
						met.Wait()
					}
					return nil
				})
				check.NoError(t, err, "%s %s", by, order)
			})
		}
		both.Wait()
	}
	if w.seen.count(event.Retried) == 0 {
		t.Error("no transaction was run again: there was no deadlock")
	}
	var sum int
	if err := w.direct.QueryRowContext(t.Context(), `SELECT sum(n) FROM accounts`).Scan(&sum); err != nil || sum != 8 {
		t.Errorf("the accounts hold %d, %v, want 8", sum, err)
	}
}

// While an open transaction holds one record, all others are claimed and ended.
func TestMariaDBLockedRowDoesNotDelayOtherRecords(t *testing.T) {
	t.Parallel()
	w := newMariaDBFixture(t)
	op := semel.Define("group", semel.OperationOptions[int]{Wait: time.Hour, Policy: semel.AtLeastOnce(), Lease: time.Minute})
	call := func(key string) semel.Call { return op.Call(semel.ScopeOf("me"), key, 1) }
	held, _, err := adapter.Begin(t.Context(), w.engine, call("held"))
	check.Require(t, err)
	lock, err := w.direct.BeginTx(t.Context(), nil)
	check.Require(t, err)
	id := call("held").ID()
	check.Must(lock.ExecContext(t.Context(), `UPDATE semel_records SET tainted = 1 WHERE id = ?`, id[:]))(t)
	ended := make(chan error, 1)
	go func() { // it cannot end before the lock is released
		_, err := held.End(1, nil)
		ended <- err
	}()
	otherRecords(t, w.engine, call)
	select {
	case err := <-ended:
		t.Errorf("the locked record was ended (%v) while it was locked", err)
	default:
	}
	check.Require(t, lock.Rollback())
	check.NoError(t, <-ended, "the end of the locked record")
}
