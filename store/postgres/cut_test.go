package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// A handler that sends what ends its transaction, and does not hear what came of
// that: the server is asked, and what it says is told.
func TestHandlerDoesNotHearOfItsEnd(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		run     func(ctx context.Context, tx pgx.Tx, p *realtest.Proxy) error
		want    store.Verdict
		effects int
		is      error
	}{
		{"COMMIT, the answer lost", func(ctx context.Context, tx pgx.Tx, p *realtest.Proxy) error {
			p.EatReply(realtest.SQL("COMMIT"))
			return do(ctx, tx, `COMMIT`)
		}, store.Unknown, 1, store.ErrTxEndedByHandler},
		{"COMMIT, not sent", func(ctx context.Context, tx pgx.Tx, p *realtest.Proxy) error {
			p.CutBefore(realtest.SQL("COMMIT"))
			return do(ctx, tx, `COMMIT`)
		}, store.NotCommitted, 0, store.ErrInterrupted},
		{"COMMIT, not read", func(ctx context.Context, tx pgx.Tx, _ *realtest.Proxy) error {
			_, err := tx.Query(ctx, `COMMIT`)
			return err
		}, store.Committed, 1, store.ErrTxEndedByHandler},
		{"COMMIT in a batch, not read", func(ctx context.Context, tx pgx.Tx, _ *realtest.Proxy) error {
			b := &pgx.Batch{}
			b.Queue(`/* at last */ COMMIT`)
			_ = tx.SendBatch(ctx, b)
			return nil
		}, store.Committed, 1, store.ErrTxEndedByHandler},
		{"COMMIT by its prepared name, the answer lost", func(ctx context.Context, tx pgx.Tx, p *realtest.Proxy) error {
			_, err := tx.Prepare(ctx, "done", `COMMIT`)
			p.EatReply(realtest.SQL("done"))
			_, lost := tx.Exec(ctx, "done")
			return errors.Join(err, lost)
		}, store.Committed, 1, store.ErrTxEndedByHandler},
		{"COMMIT on the connection, the answer lost", func(ctx context.Context, tx pgx.Tx, p *realtest.Proxy) error {
			p.EatReply(realtest.SQL("COMMIT"))
			_, err := tx.Conn().Exec(ctx, `COMMIT`)
			return err
		}, store.Unknown, 1, store.ErrTxEndedByHandler},
		{"COMMIT AND CHAIN, and then the connection lost", func(ctx context.Context, tx pgx.Tx, p *realtest.Proxy) error {
			err := do(ctx, tx, `COMMIT AND CHAIN`)
			p.CutBefore(realtest.SQL("INTO effects"))
			return errors.Join(err, effect(ctx, tx, "key"))
		}, store.Unknown, 1, store.ErrTxEndedByHandler},
		{"COMMIT AND CHAIN, and then the connection lost unseen", func(ctx context.Context, tx pgx.Tx, p *realtest.Proxy) error {
			err := do(ctx, tx, `COMMIT AND CHAIN`)
			p.CutBefore(realtest.SQL("pg_current_xact_id() ="))
			return err
		}, store.Unknown, 1, store.ErrTxEndedByHandler},
		{"ROLLBACK and more, the answer lost", func(ctx context.Context, tx pgx.Tx, p *realtest.Proxy) error {
			p.EatReply(realtest.SQL("ROLLBACK"))
			return do(ctx, tx, `ROLLBACK; INSERT INTO effects VALUES ('key')`)
		}, store.Unknown, 1, store.ErrTxEndedByHandler},
		{"ROLLBACK, the answer lost", func(ctx context.Context, tx pgx.Tx, p *realtest.Proxy) error {
			p.EatReply(realtest.SQL("ROLLBACK"))
			return do(ctx, tx, `ROLLBACK`)
		}, store.NotCommitted, 0, store.ErrInterrupted},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := breaking(t)
			last := create("key", store.Succeeded, 1)
			verdict, err := r.store.Atomic(t.Context(), last.To.ID, true,
				func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
					err := effect(ctx, tx, "key")
					_ = row.run(ctx, tx, r.proxy)
					return &last, err
				})
			if verdict != row.want || !errors.Is(err, row.is) {
				t.Errorf("Atomic = %v, %v, want %v and %v", verdict, err, row.want, row.is)
			}
			if n := effects(t, r.direct, "key"); n != row.effects {
				t.Errorf("%d effects, want %d", n, row.effects)
			}
			mustBeFree(t, r.store, last)
		})
	}
}

// The server is asked what became of a transaction until it answers. It may have
// crashed meanwhile, so that a number that committed may be another's.
func TestEndIsAskedAgain(t *testing.T) {
	t.Parallel()
	r := breaking(t)
	last := create("key", store.Succeeded, 1)
	verdict, err := r.store.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
			err := errors.Join(effect(ctx, tx, "key"), do(ctx, tx, `COMMIT`))
			r.proxy.CutBefore(realtest.SQL("pg_xact_status"))
			return &last, err
		})
	if verdict != store.Unknown || !errors.Is(err, store.ErrTxEndedByHandler) {
		t.Errorf("Atomic = %v, %v, want Unknown and ErrTxEndedByHandler", verdict, err)
	}
}

// A server that is killed gives no answer. The verdict is Unknown only where the
// handler may have ended its transaction.
func TestEndThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	server := realtest.OwnPostgres(t)
	s := newStore(t, connect(t, migrated(t, server)), postgres.Options{})
	s.SetCommitBound(200 * time.Millisecond)
	for sql, want := range map[string]store.Verdict{
		`-- a comment, not a COMMIT;
INSERT INTO effects VALUES ('commit')`: store.NotCommitted,
		`INSERT INTO effects VALUES ('key'); UPDATE effects SET key = key;`: store.NotCommitted,
		`INSERT INTO effects VALUES ('key'); COMMIT`:                        store.Unknown,
	} {
		last := create(sql, store.Succeeded, 1)
		verdict, err := s.Atomic(t.Context(), last.To.ID, true,
			func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
				server.Pause()
				defer server.Kill()
				bounded, cancel := context.WithTimeout(ctx, time.Second) // it is to be sent
				defer cancel()
				return &last, do(bounded, tx, sql)
			})
		is := map[store.Verdict]error{store.NotCommitted: store.ErrInterrupted, store.Unknown: store.ErrTxEndedByHandler}[want]
		if verdict != want || !errors.Is(err, is) {
			t.Errorf("%s: Atomic = %v, %v, want %v and %v", sql, verdict, err, want, is)
		}
		server.Start(t)
		s.Pool().Reset()
	}
}

// A transaction that was prepared for a two-phase commit has an unknown outcome,
// and the store does not wait for it.
func TestHandlerPreparesTheTransaction(t *testing.T) {
	t.Parallel()
	pool := connect(t, migrated(t, realtest.OwnPostgres(t, "max_prepared_transactions=1")))
	s := newStore(t, pool, postgres.Options{})
	s.SetCommitBound(time.Hour)
	last := create("key", store.Succeeded, 1)
	verdict, err := s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
			return &last, errors.Join(effect(ctx, tx, "key"), do(ctx, tx, `PREPARE TRANSACTION 'theirs'`))
		})
	if verdict != store.Unknown || !errors.Is(err, store.ErrTxEndedByHandler) {
		t.Errorf("Atomic = %v, %v, want Unknown and ErrTxEndedByHandler", verdict, err)
	}
	mustExec(t, pool, `COMMIT PREPARED 'theirs'`)
	if n := effects(t, pool, "key"); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

// rows is a source of rows that gives none, and does not end before it is told.
type rows struct{ end chan struct{} }

func (r rows) Next() bool {
	<-r.end
	return false
}
func (rows) Values() ([]any, error) { return nil, nil }
func (rows) Err() error             { return nil }

// An abandoned call that never ends does not block other callers.
func TestAbandonedCallThatNeverEnds(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t), func(c *pgxpool.Config) { c.MaxConns = 2 })
	s := newStore(t, pool, postgres.Options{})
	last := create("key", store.Succeeded, 1)
	source, ended := rows{make(chan struct{})}, make(chan error, 1)
	verdict, err := s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
			pid := one[uint32](t, pool, `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'`)
			go func() {
				_, err := tx.CopyFrom(ctx, pgx.Identifier{"effects"}, []string{"key"}, source)
				ended <- err
			}()
			for !one[bool](t, pool, `SELECT coalesce(wait_event = 'ClientRead', false) AND query ILIKE 'copy%' FROM pg_stat_activity WHERE pid = $1`, pid) {
				continue
			}
			return nil, errHandler
		})
	if verdict != store.NotCommitted || !errors.Is(err, errHandler) {
		t.Errorf("Atomic = %v, %v, want NotCommitted and the handler's error", verdict, err)
	}
	mustBeFree(t, s, last)
	close(source.end)
	if err := <-ended; err == nil {
		t.Error("the call left behind ends without an error")
	}
}
