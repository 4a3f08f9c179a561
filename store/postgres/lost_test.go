package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// A transaction that never began ran nothing, and is not in doubt.
func TestBeginThatIsLost(t *testing.T) {
	t.Parallel()
	r := breaking(t)
	last := create("key", store.Succeeded, 1)
	for name, arm := range map[string]func(realtest.Match) *realtest.Fault{
		"the answer lost": r.proxy.EatReply,
		"not sent":        r.proxy.CutBefore,
	} {
		fault := arm(realtest.SQL("begin"))
		verdict, err := r.store.Atomic(t.Context(), last.To.ID, true,
			func(context.Context, pgx.Tx, store.SwapResult) (*store.Change, error) {
				t.Errorf("%s: run is called without a transaction", name)
				return nil, errHandler
			})
		if verdict != store.NotCommitted || err == nil {
			t.Errorf("%s: Atomic = %v, %v, want NotCommitted", name, verdict, err)
		}
		fault.Wait(t)
	}
	mustBeFree(t, r.store, last)
}

// If the connection is lost while the handler runs, nothing is committed, whether the handler
// returns the error or ignores it.
func TestConnectionLostInTheHandler(t *testing.T) {
	t.Parallel()
	r := breaking(t)
	last := create("key", store.Succeeded, 1)
	failed := create("key", store.Failed, 1)
	for name, run := range map[string]func(err error) (*store.Change, error){
		"told":         func(err error) (*store.Change, error) { return nil, errors.Join(errHandler, err) },
		"passed over":  func(error) (*store.Change, error) { return &last, nil },
		"to be kept":   func(err error) (*store.Change, error) { return &failed, errors.Join(errHandler, err) },
		"nothing said": func(error) (*store.Change, error) { return nil, nil },
	} {
		for _, fault := range []*realtest.Fault{
			r.proxy.EatReply(realtest.SQL("INTO effects")),
			r.proxy.CutBefore(realtest.SQL("INTO effects")),
		} {
			var cause error
			verdict, err := whenFree(t, r.store, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				cause = effect(ctx, tx, "key")
				return run(cause)
			})
			if verdict != store.NotCommitted || cause == nil || !errors.Is(err, cause) || !errors.Is(err, store.ErrInterrupted) {
				t.Errorf("%s: Atomic = %v, %v, want NotCommitted, ErrInterrupted and the loss: %v", name, verdict, err, cause)
			}
			fault.Wait(t)
			if n := effects(t, r.direct, "key"); n != 0 || current(t, r.store, last) != (store.Token{}) {
				t.Errorf("%s: %d effects and %+v, want nothing", name, n, current(t, r.store, last))
			}
		}
	}
	proof := create("key", store.Pending, 2)
	if got := settled(t, r.store, proof); got != proof.To.Token {
		t.Errorf("the current record is %+v, want the certificate", got)
	}
}

// A session that the server ends while the handler does something else.
func TestSessionEndedInTheHandler(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	last := create("key", store.Succeeded, 1)
	verdict, err := s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
			err := effect(ctx, tx, "key")
			mustEnd(t, s, tx.Conn().PgConn().PID(), func(pid uint32) {
				mustExec(t, pool, `SELECT pg_terminate_backend($1)`, pid)
			})
			return &last, err
		})
	// What ended the session may have come after the COMMIT as well, if that
	// was sent.
	if verdict == store.Committed || err == nil {
		t.Errorf("Atomic = %v, %v, want an error", verdict, err)
	}
	check.Equal(t, effects(t, pool, "key"), 0, "effects")
	mustBeFree(t, s, last)
}

// mustEnd ends a session and waits until it is over.
func mustEnd(t *testing.T, s *postgres.Store, pid uint32, end func(pid uint32)) {
	t.Helper()
	end(pid)
	for one[bool](t, s.Pool(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, pid) {
		continue
	}
}

// The server ends a transaction that was idle for too long, so that other callers can have
// the record. When its process continues, the verdict is NotCommitted.
func TestIdleInTransaction(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s, patient := newStore(t, pool, postgres.Options{IdleInTransaction: 50 * time.Millisecond}), newStore(t, pool, postgres.Options{})
	last, other := create("key", store.Succeeded, 1), create("key", store.Succeeded, 2)
	verdict, err := s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
			err := effect(ctx, tx, "key")
			mustEnd(t, s, tx.Conn().PgConn().PID(), func(uint32) {})
			if verdict, err := finish(t, patient, "key", &other); verdict != store.Committed {
				t.Errorf("the next one's Atomic = %v, %v, want Committed", verdict, err)
			}
			return &last, err
		})
	if verdict != store.NotCommitted || postgres.CodeOf(err) != "25P03" || !errors.Is(err, store.ErrInterrupted) {
		t.Errorf("Atomic = %v, %v, want NotCommitted, ErrInterrupted and 25P03", verdict, err)
	}
	if n := effects(t, pool, "key"); n != 1 || current(t, s, last) != other.To.Token {
		t.Errorf("%d effects and %+v, want those of the next one", n, current(t, s, last))
	}
}

// The server's timeouts of statements and of locks.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	mustExec(t, pool, `INSERT INTO effects VALUES ('locked')`)
	holder := check.Must(pool.Begin(t.Context()))(t)
	defer func() { _ = holder.Rollback(context.WithoutCancel(t.Context())) }()
	mustExec(t, holder, `UPDATE effects SET key = key`)
	for _, row := range []struct {
		o         postgres.Options
		sql, code string
	}{
		{postgres.Options{StatementTimeout: time.Second}, `SELECT pg_sleep(600)`, "57014"},
		{postgres.Options{LockTimeout: 20 * time.Millisecond}, `UPDATE effects SET key = key`, "55P03"},
	} {
		s := newStore(t, pool, row.o)
		last := create("key", store.Succeeded, 1)
		verdict, err := s.Atomic(t.Context(), last.To.ID, true,
			func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
				return &last, do(ctx, tx, row.sql)
			})
		if verdict != store.NotCommitted || postgres.CodeOf(err) != row.code || !errors.Is(err, store.ErrInterrupted) {
			t.Errorf("Atomic with %+v = %v, %v, want NotCommitted, ErrInterrupted and %s", row.o, verdict, err, row.code)
		}
		mustBeFree(t, s, last)
	}
}

// The settings of the transactions of Atomic, also behind PgBouncer.
func TestTimeoutSettings(t *testing.T) {
	t.Parallel()
	url := database(t)
	direct := connect(t, url)
	mustExec(t, direct, `ALTER ROLE CURRENT_USER IN DATABASE `+pgx.Identifier{direct.Config().ConnConfig.Database}.Sanitize()+` SET statement_timeout = '7s'`)
	direct.Reset()
	for _, pool := range []*pgxpool.Pool{direct, connect(t, realtest.PgBouncer(t, url), mode(pgx.QueryExecModeExec))} {
		for _, row := range []struct {
			o    postgres.Options
			want string
		}{
			{postgres.Options{}, "30s 10s 30s"},
			{postgres.Options{IdleInTransaction: time.Minute, LockTimeout: time.Microsecond, StatementTimeout: 1500 * time.Millisecond}, "1min 1ms 1500ms"},
			{postgres.Options{IdleInTransaction: -1, LockTimeout: -1, StatementTimeout: -1}, "0 0 7s"},
		} {
			var got string
			verdict, err := newStore(t, pool, row.o).Atomic(t.Context(), store.ID{1}, true,
				func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
					return nil, tx.QueryRow(ctx, `SELECT concat_ws(' ', current_setting('idle_in_transaction_session_timeout'),
current_setting('lock_timeout'), current_setting('statement_timeout'))`).Scan(&got)
				})
			if verdict != store.Committed || err != nil || got != row.want {
				t.Errorf("Atomic with %+v = %v, %v with the settings %s, want %s", row.o, verdict, err, got, row.want)
			}
		}
	}
}
