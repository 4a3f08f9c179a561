package failures_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
)

// rounds is how often each reply is lost.
const rounds = 20

// proxiedFixture is a fixture whose store is reached through a proxy.
type proxiedFixture struct {
	*fixture[pgx.Tx]

	proxy  *realtest.Proxy
	direct *pgxpool.Pool // not through the proxy
}

// execDirect runs a statement without the proxy.
func (w *proxiedFixture) execDirect(ctx context.Context, statement string, args ...any) error {
	_, err := w.direct.Exec(ctx, statement, args...)
	return err
}

func newProxiedFixture(t *testing.T) *proxiedFixture {
	t.Helper()
	t.Attr("engine", "postgres")
	server := realtest.Postgres(t)
	url := server.Database(t)
	proxy := realtest.NewProxy(t, server.Addr())
	w := newFixture(t, inPostgres(t, url, proxy.URL(url)), "wire")
	return &proxiedFixture{fixture: w, proxy: proxy, direct: ledger.Pool(t, url)}
}

// inTx runs one operation whose effect is in the record's database.
func (w *proxiedFixture) inTx(ctx context.Context, by handlerMode, key string) (string, bool, error) {
	o := semel.OperationOptions[string]{}
	if by == leased {
		o.Policy, o.Lease = semel.Atomic(), w.Lease*100
	}
	call := semel.Define(w.op(string(by)), o).Call(semel.ScopeOf("ann"), key, "in")
	return semel.DoTx(ctx, w.engine, call, func(ctx context.Context, tx pgx.Tx) (string, error) {
		return "done " + key, w.effect(ctx, tx, key)
	})
}

// outside runs an operation whose effect is elsewhere, and which is never run again
// automatically.
func (w *proxiedFixture) outside(ctx context.Context, key string) (string, bool, error) {
	call := semel.Define(w.op("outside"), semel.OperationOptions[string]{}).Call(semel.ScopeOf("ann"), key, "in")
	return semel.Do(ctx, w.engine, call, func(ctx context.Context) (string, error) {
		return "done " + key, w.execDirect(ctx, `insert into effects (key) values ($1)`, w.op(key))
	})
}

// wantSuccess requires that the call returns its own success, and a retry its
// replay, with one effect.
func (w *proxiedFixture) wantSuccess(t *testing.T, key string, createdHandler func() (string, bool, error)) {
	t.Helper()
	run := func() (string, bool, error) { return retryWhileBusy(t, createdHandler) }
	if v, replayed, err := run(); v != "done "+key || replayed || err != nil {
		t.Errorf("%s: %q, replayed %v, %v, want its own success", key, v, replayed, err)
	}
	if v, replayed, err := run(); v != "done "+key || !replayed || err != nil {
		t.Errorf("%s again: %q, replayed %v, %v, want a replay", key, v, replayed, err)
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
	w := newProxiedFixture(t)
	for i := range rounds {
		for name, run := range map[string]func(key string) (string, bool, error){
			"leased":  func(key string) (string, bool, error) { return w.inTx(t.Context(), leased, key) },
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
	w := newProxiedFixture(t)
	for i := range rounds {
		for _, by := range handlerModes() {
			key := fmt.Sprint(by, i)
			fault := w.proxy.EatReply(realtest.Commit())
			w.wantSuccess(t, key, func() (string, bool, error) { return w.inTx(t.Context(), by, key) })
			fault.Wait(t)
		}
	}
	check.Equal(t, w.seen.count(event.AmbiguousYes), 2*rounds, "ambiguous commits resolved as committed")
}

// A caller whose COMMIT never arrived finds out that it has not committed, and only
// then returns this.
func TestCommitIsLost(t *testing.T) {
	t.Parallel()
	w := newProxiedFixture(t)
	for i := range rounds {
		for _, by := range handlerModes() {
			key := fmt.Sprint(by, i)
			fault := w.proxy.CutBefore(realtest.Commit())
			_, _, err := w.inTx(t.Context(), by, key)
			fault.Wait(t)
			if semel.VerdictOf(err) != store.NotCommitted || err == nil {
				t.Errorf("%s: %v, want that it is proven not to have committed", key, err)
			}
			w.wantEffects(t, key, 0)
			w.wantSuccess(t, key, func() (string, bool, error) { return w.inTx(t.Context(), by, key) })
		}
	}
	check.Equal(t, w.seen.count(event.AmbiguousNo), 2*rounds, "ambiguous commits resolved as not committed")
}

// A commit that is still running when its connection breaks is waited for: the
// record then decides the answer.
func TestSlowCommitIsCutOff(t *testing.T) {
	t.Parallel()
	w := newProxiedFixture(t)
	check.Require(t, w.execDirect(t.Context(), `
create function slowly() returns trigger language plpgsql as $$ begin perform pg_sleep(0.3); return null; end $$;
create constraint trigger slow after insert on effects deferrable initially deferred
for each row execute function slowly()`))
	for i := range 4 {
		for _, by := range handlerModes() {
			key := fmt.Sprint(by, i)
			fault := w.proxy.CutAfter(realtest.Commit())
			_, _, err := w.inTx(t.Context(), by, key)
			fault.Wait(t)
			if err != nil && semel.VerdictOf(err) != store.NotCommitted {
				t.Errorf("%s: %v, want its success, or that the proof came before the commit", key, err)
			}
			w.wantEffects(t, key, map[bool]int{true: 1, false: 0}[err == nil])
			v, replayed, again := retryWhileBusy(t, func() (string, bool, error) { return w.inTx(t.Context(), by, key) })
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
	w := newProxiedFixture(t)
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
	w := newProxiedFixture(t)
	for i := range 6 {
		for _, by := range handlerModes() {
			key := fmt.Sprint(by, i)
			ctx, giveUp := context.WithCancel(t.Context())
			w.hooks.onEnd(giveUp)
			_, _, err := w.inTx(ctx, by, key)
			giveUp()
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", key, err)
			}
			v, _, err := retryWhileBusy(t, func() (string, bool, error) { return w.inTx(t.Context(), by, key) })
			check.Result(v, err)(t, "done "+key, "%s again", key)
			w.wantEffects(t, key, 1)
		}
	}
}
