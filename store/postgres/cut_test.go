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

// A handler ends its transaction and gets no reply. The store asks the server for the
// state of the transaction, and returns it as the verdict.
func TestHandlerLosesTheReplyToItsCommit(t *testing.T) {
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
			check.ResultIs(verdict, err)(t, row.want, row.is, "Atomic")
			check.Equal(t, effects(t, r.direct, "key"), row.effects, "effects")
			mustBeFree(t, r.store, last)
		})
	}
}

// The store asks for the state of a transaction until the server answers. If the server may
// have crashed meanwhile, the number may belong to a later transaction.
func TestStateOfATransactionIsAskedAgain(t *testing.T) {
	t.Parallel()
	r := breaking(t)
	last := create("key", store.Succeeded, 1)
	verdict, err := r.store.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
			err := errors.Join(effect(ctx, tx, "key"), do(ctx, tx, `COMMIT`))
			r.proxy.CutBefore(realtest.SQL("pg_xact_status"))
			return &last, err
		})
	check.ResultIs(verdict, err)(t, store.Unknown, store.ErrTxEndedByHandler, "Atomic")
}

// A server that is killed gives no answer. The verdict is Unknown only where the
// handler may have ended its transaction.
func TestStateOfATransactionIsUnanswered(t *testing.T) {
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
				bounded, cancel := context.WithTimeout(ctx, time.Second) // long enough to send the statement
				defer cancel()
				return &last, do(bounded, tx, sql)
			})
		is := map[store.Verdict]error{store.NotCommitted: store.ErrInterrupted, store.Unknown: store.ErrTxEndedByHandler}[want]
		check.ResultIs(verdict, err)(t, want, is, "%s: Atomic", sql)
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
	check.ResultIs(verdict, err)(t, store.Unknown, store.ErrTxEndedByHandler, "Atomic")
	mustExec(t, pool, `COMMIT PREPARED 'theirs'`)
	check.Equal(t, effects(t, pool, "key"), 1, "effects")
}

// rows is a source without rows that blocks until end is closed.
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
	check.ResultIs(verdict, err)(t, store.NotCommitted, errHandler, "Atomic (want NotCommitted and the handler's error)")
	mustBeFree(t, s, last)
	close(source.end)
	check.Fails(t, <-ended, "the call left behind ends without an error")
}
