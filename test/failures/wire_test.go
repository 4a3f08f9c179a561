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

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/mysql"
	"github.com/semelgo/semel/store/storetest"
)

// rounds is how often each reply is lost.
const rounds = 20

// wire is a fixture whose store is reached through a proxy.
type wire[Tx any] struct {
	*fixture[Tx]

	proxy  *realtest.Proxy
	direct *sql.DB           // not through the proxy
	commit func([]byte) bool // matches the statement that ends a handler's transaction
	exec   func(ctx context.Context, tx Tx, statement string) error
}

// onWires runs a test on each database.
func onWires(t *testing.T, onPostgres func(*testing.T, *wire[pgx.Tx]), onMariaDB func(*testing.T, *wire[*sql.Tx])) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		onPostgres(t, newPostgresWire(t))
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		onMariaDB(t, newMariaDBWire(t))
	})
}

func newPostgresWire(t *testing.T) *wire[pgx.Tx] {
	t.Helper()
	t.Attr("engine", "postgres")
	server := realtest.Postgres(t)
	url := server.Database(t)
	proxy := realtest.NewProxy(t, server.Addr())
	w := newFixture(t, inPostgres(t, url, proxy.URL(url)), "wire")
	direct := check.Must(sql.Open("pgx", url))(t)
	t.Cleanup(func() { direct.Close() })
	return &wire[pgx.Tx]{w, proxy, direct, realtest.Commit(), func(ctx context.Context, tx pgx.Tx, statement string) error {
		_, err := tx.Exec(ctx, statement)
		return err
	}}
}

func newMariaDBWire(t *testing.T) *wire[*sql.Tx] {
	t.Helper()
	t.Attr("engine", "mysql")
	server := realtest.MariaDB(t)
	name := server.Database(t)
	proxy := realtest.NewMySQLProxy(t, server.Addr())
	w := newFixture(t, onSubject(ledger.MariaDB(t, name, proxy.DSN(name)), 2*time.Second), "mariadb")
	direct := check.Must(mysql.Open(name))(t)
	t.Cleanup(func() { direct.Close() })
	ends := func(request []byte) bool {
		return strings.Contains(string(request), "SAVEPOINT semelrun") && realtest.Commit()(request)
	}
	return &wire[*sql.Tx]{w, proxy, direct, ends, func(ctx context.Context, tx *sql.Tx, statement string) error {
		_, err := tx.ExecContext(ctx, statement)
		return err
	}}
}

// inTx runs one operation with that handler.
func (w *wire[Tx]) inTx(ctx context.Context, by handlerMode, key string, handler func(context.Context, Tx) error) (string, bool, error) {
	o := semel.OperationOptions[string]{}
	if by == leased {
		o.Policy, o.Lease = semel.Atomic(), longLease
	}
	call := semel.Define(w.op(string(by)), o).Call(semel.ScopeOf("ann"), key, "in")
	return semel.DoTx(ctx, w.engine, call, func(ctx context.Context, tx Tx) (string, error) {
		return "done " + key, handler(ctx, tx)
	})
}

// withEffect runs one operation whose effect is in the record's database.
func (w *wire[Tx]) withEffect(ctx context.Context, by handlerMode, key string) (string, bool, error) {
	return w.inTx(ctx, by, key, func(ctx context.Context, tx Tx) error { return w.effect(ctx, tx, key) })
}

// outside runs an operation whose effect is elsewhere, and which is never run again
// automatically.
func (w *wire[Tx]) outside(ctx context.Context, key string) (string, bool, error) {
	call := semel.Define(w.op("outside"), semel.OperationOptions[string]{}).Call(semel.ScopeOf("ann"), key, "in")
	return semel.Do(ctx, w.engine, call, func(ctx context.Context) (string, error) {
		_, err := w.direct.ExecContext(ctx, `insert into effects (key) values ($1)`, w.op(key))
		return "done " + key, err
	})
}

// wantSuccess requires that the call returns its own success, and a retry its
// replay, with one effect.
func (w *wire[Tx]) wantSuccess(t *testing.T, key string, call func() (string, bool, error)) {
	t.Helper()
	for i := range 2 {
		v, replayed, err := retryWhileBusy(t, call)
		if v != "done "+key || replayed != (i == 1) || err != nil {
			t.Errorf("call %d of %s: %q, replayed %v, %v, want its success, then a replay", i, key, v, replayed, err)
		}
	}
	w.wantEffects(t, key, 1)
}

// retryWhileBusy retries while the record is busy: the server may not have noticed
// yet that a connection is lost.
func retryWhileBusy(t *testing.T, request func() (string, bool, error)) (v string, replayed bool, err error) {
	t.Helper()
	realtest.Poll(t, "the end of the lost attempt", func() bool {
		v, replayed, err = request()
		return !errors.Is(err, semel.ErrInProgress)
	})
	return v, replayed, err
}

// A caller that loses the reply to its claim is still the leader.
func TestReplyToTheClaimIsLost(t *testing.T) {
	t.Parallel()
	w := newPostgresWire(t)
	for i := range rounds {
		for name, run := range map[string]func(key string) (string, bool, error){
			"leased":  func(key string) (string, bool, error) { return w.withEffect(t.Context(), leased, key) },
			"outside": func(key string) (string, bool, error) { return w.outside(t.Context(), key) },
		} {
			key := fmt.Sprint(name, i)
			fault := w.proxy.EatReply(realtest.SQL(`INSERT INTO "public".semel_records`))
			w.wantSuccess(t, key, func() (string, bool, error) { return run(key) })
			fault.Wait(t)
		}
	}
	if n := w.seen.count(event.StoreError); n < 2*rounds {
		t.Errorf("%d lost replies were seen, want %d", n, 2*rounds)
	}
}

// A caller that loses the reply to its COMMIT finds out that it has committed.
func TestReplyToTheCommitIsLost(t *testing.T) {
	t.Parallel()
	onWires(t, loseCommitReplies[pgx.Tx], loseCommitReplies[*sql.Tx])
}

func loseCommitReplies[Tx any](t *testing.T, w *wire[Tx]) {
	t.Helper()
	for i := range rounds {
		for _, by := range handlerModes() {
			key := fmt.Sprint(by, i)
			fault := w.proxy.EatReply(w.commit)
			w.wantSuccess(t, key, func() (string, bool, error) { return w.withEffect(t.Context(), by, key) })
			fault.Wait(t)
		}
	}
	check.Equal(t, w.seen.count(event.AmbiguousYes), 2*rounds, "ambiguous commits resolved as committed")
}

// A caller whose COMMIT never arrived finds out that it has not committed, and only
// then returns this.
func TestCommitIsLost(t *testing.T) {
	t.Parallel()
	onWires(t, loseCommits[pgx.Tx], loseCommits[*sql.Tx])
}

func loseCommits[Tx any](t *testing.T, w *wire[Tx]) {
	t.Helper()
	for i := range rounds {
		for _, by := range handlerModes() {
			key := fmt.Sprint(by, i)
			fault := w.proxy.CutBefore(w.commit)
			_, _, err := w.withEffect(t.Context(), by, key)
			fault.Wait(t)
			if semel.VerdictOf(err) != store.NotCommitted || err == nil {
				t.Errorf("%s: %v, want that it is proven not to have committed", key, err)
			}
			w.wantEffects(t, key, 0)
			w.wantSuccess(t, key, func() (string, bool, error) { return w.withEffect(t.Context(), by, key) })
		}
	}
	check.Equal(t, w.seen.count(event.AmbiguousNo), 2*rounds, "ambiguous commits resolved as not committed")
}

// A handler whose connection is killed has no effect, and its retry has one.
func TestMariaDBKilledHandler(t *testing.T) {
	t.Parallel()
	w := newMariaDBWire(t)
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
		w.wantSuccess(t, key, func() (string, bool, error) { return w.withEffect(t.Context(), by, key) })
	}
}

// A commit that is still running when its connection breaks is waited for: the
// record then decides the answer.
func TestSlowCommitIsCutOff(t *testing.T) {
	t.Parallel()
	w := newPostgresWire(t)
	check.Must(w.direct.ExecContext(t.Context(), `
create function slowly() returns trigger language plpgsql as $$ begin perform pg_sleep(0.3); return null; end $$;
create constraint trigger slow after insert on effects deferrable initially deferred
for each row execute function slowly()`))(t)
	for i := range 4 {
		for _, by := range handlerModes() {
			key := fmt.Sprint(by, i)
			fault := w.proxy.CutAfter(realtest.Commit())
			_, _, err := w.withEffect(t.Context(), by, key)
			fault.Wait(t)
			if err != nil && semel.VerdictOf(err) != store.NotCommitted {
				t.Errorf("%s: %v, want its success, or that the proof came before the commit", key, err)
			}
			w.wantEffects(t, key, map[bool]int{true: 1, false: 0}[err == nil])
			v, replayed, again := retryWhileBusy(t, func() (string, bool, error) { return w.withEffect(t.Context(), by, key) })
			if v != "done "+key || replayed != (err == nil) || again != nil {
				t.Errorf("%s again: %q, replayed %v, %v", key, v, replayed, again)
			}
			w.wantEffects(t, key, 1)
		}
	}
	if w.seen.count(event.AmbiguousYes) == 0 {
		t.Error("no ambiguous commit was resolved as committed")
	}
}

// A success whose recording lost its reply is returned as a success, and its record
// stays.
func TestReplyToTheOutcomeIsLost(t *testing.T) {
	t.Parallel()
	w := newPostgresWire(t)
	for i := range rounds {
		key := fmt.Sprint("outside", i)
		fault := w.proxy.EatReply(realtest.SQL(`UPDATE "public".semel_records`))
		w.wantSuccess(t, key, func() (string, bool, error) { return w.outside(t.Context(), key) })
		fault.Wait(t)
	}
}

// A caller that cancels during its COMMIT learns the outcome with its next call.
func TestCallerGivesUpInTheCommit(t *testing.T) {
	t.Parallel()
	w := newPostgresWire(t)
	for i := range 6 {
		for _, by := range handlerModes() {
			key := fmt.Sprint(by, i)
			ctx, giveUp := context.WithCancel(t.Context())
			w.faults.Decide(func(storetest.Call) storetest.Fault { return storetest.Fault{Commit: giveUp} })
			_, _, err := w.withEffect(ctx, by, key)
			giveUp()
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", key, err)
			}
			v, _, err := retryWhileBusy(t, func() (string, bool, error) { return w.withEffect(t.Context(), by, key) })
			check.Result(v, err)(t, "done "+key, "%s again", key)
			w.wantEffects(t, key, 1)
		}
	}
}
