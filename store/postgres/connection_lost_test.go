package postgres_test

import (
	"context"
	"errors"
	"testing"

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
	for name, arm := range map[string]func(realtest.Match) *realtest.Fault{"reply lost": r.proxy.EatReply, "not sent": r.proxy.CutBefore} {
		fault := arm(realtest.SQL("begin"))
		verdict, err := inTx(t, r.store, last.To.ID, func(context.Context, pgx.Tx) (*store.Change, error) {
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

// A caller that gives up while the server does not reply to the begin returns.
func TestBeginIsGivenUp(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{}, atMost(2))
	others := connect(t, pool.Config().ConnString())
	last := create("key", store.Succeeded, 1)
	current(t, s, last) // finds the tables
	tx := check.Must(others.Begin(t.Context()))(t)
	mustExec(t, tx, `LOCK TABLE semel_records IN ACCESS EXCLUSIVE MODE`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		untilLocked(t, others, "relation")
	}()
	verdict, err := s.Atomic(ctx, last.To.ID, true, func(context.Context, pgx.Tx, store.SwapResult) (*store.Change, error) {
		t.Error("run is called without a transaction")
		return nil, errHandler
	})
	check.ResultIs(verdict, err)(t, store.NotCommitted, context.Canceled, "Atomic (want it canceled)")
	check.Require(t, tx.Rollback(t.Context()))
	mustBeFree(t, s, last)
}

// If the connection is lost while the handler runs, nothing is committed, whether the handler
// returns the error or ignores it.
func TestConnectionLostInTheHandler(t *testing.T) {
	t.Parallel()
	r := breaking(t)
	last, failed := create("key", store.Succeeded, 1), create("key", store.Failed, 1)
	for name, run := range map[string]func(err error) (*store.Change, error){
		"returned":   func(err error) (*store.Change, error) { return nil, errors.Join(errHandler, err) },
		"ignored":    func(error) (*store.Change, error) { return &last, nil },
		"to be kept": func(err error) (*store.Change, error) { return &failed, errors.Join(errHandler, err) },
		"no change":  func(error) (*store.Change, error) { return nil, nil },
	} {
		for _, fault := range []*realtest.Fault{r.proxy.EatReply(realtest.SQL("INTO effects")), r.proxy.CutBefore(realtest.SQL("INTO effects"))} {
			var cause error
			verdict, err := whenFree(t, r.store, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				cause = effect(ctx, tx, "key")
				return run(cause)
			})
			if verdict != store.NotCommitted || cause == nil || !errors.Is(err, cause) || !errors.Is(err, store.ErrInterrupted) {
				t.Errorf("%s: Atomic = %v, %v, want NotCommitted, ErrInterrupted and the loss: %v", name, verdict, err, cause)
			}
			fault.Wait(t)
			check.Equal(t, effects(t, r.direct, "key"), 0, "%s: effects", name)
			mustBeFree(t, r.store, last)
		}
	}
}

// A reply to something else that is left unread on a connection is never taken for the reply
// to a COMMIT: a transaction that was not committed would be reported as committed.
func TestUnreadReply(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{}, atMost(2))
	stored := create("stored", store.Succeeded, 1)
	mustForce(t, s, stored)
	for name, commit := range map[string]commitFunc{"Atomic": byAtomic, "AtomicBatch": byBatch(oneEffect)} {
		check.Result(commit(t, s, create(name, store.Succeeded, 1)))(t, store.Committed, "%s on a new connection", name)
		check.Require(t, pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
			_, err := conn.Conn().PgConn().Conn().Write([]byte{'S', 0, 0, 0, 4}) // Sync, whose reply is not read
			return err
		}))
		again := stored
		again.To.Owner = 2
		if verdict, err := commit(t, s, again); verdict == store.Committed || err == nil {
			t.Errorf("%s behind an unread reply = %v, %v, want an error", name, verdict, err)
		}
		check.Equal(t, one[int](t, pool, `SELECT 1`), 1, "%s: a query afterwards", name)
	}
	check.Equal(t, current(t, s, stored), stored.To.Token, "the current record")
}
