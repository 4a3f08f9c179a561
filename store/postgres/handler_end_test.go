package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// each runs texts one after the other, and ignores their errors.
func each(texts ...string) func(ctx context.Context, tx pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) (err error) {
		for _, text := range texts {
			err = errors.Join(err, do(ctx, tx, text))
		}
		return err
	}
}

// onConn runs a text on the connection of a transaction, where the store does not see it.
func onConn(text string) func(ctx context.Context, tx pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Conn().Exec(ctx, text)
		return err
	}
}

// A handler that ends the transaction itself gets an error, and the verdict is correct.
func TestHandlerEndsTheTransaction(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{})
	mustExec(t, pool, `CREATE TABLE early (n int PRIMARY KEY)`)
	mustExec(t, pool, `CREATE TABLE late (n int REFERENCES early DEFERRABLE INITIALLY DEFERRED)`)
	succeeded, kept := create("key", store.Succeeded, 1), create("key", store.Failed, 1)
	for _, row := range []struct {
		name    string
		run     func(ctx context.Context, tx pgx.Tx) error
		last    *store.Change
		failed  error
		want    store.Verdict
		effects int
	}{
		{"COMMIT", each(anEffect, `COMMIT`), &succeeded, nil, store.Committed, 1},
		{"COMMIT and an error", each(anEffect, `COMMIT`), nil, errHandler, store.Committed, 1},
		{"COMMIT and a failure to be kept", each(anEffect, `COMMIT`), &kept, errHandler, store.Committed, 1},
		{"COMMIT, then more, which is refused", func(ctx context.Context, tx pgx.Tx) error {
			err := each(anEffect, `COMMIT`)(ctx, tx)
			mustRefuse(t, tx)
			return err
		}, &succeeded, nil, store.Committed, 1},
		{"COMMIT, then more on the connection", onConn(anEffect + `; COMMIT; ` + anEffect), &succeeded, nil, store.Committed, 2},
		{"COMMIT and BEGIN", each(anEffect, `COMMIT; BEGIN`, anEffect), &succeeded, nil, store.Committed, 1},
		{"COMMIT and BEGIN, and an error", each(anEffect, `COMMIT; BEGIN`), nil, errHandler, store.Committed, 1},
		{"COMMIT AND CHAIN, and an aborted transaction", each(anEffect, `COMMIT AND CHAIN`, `SELECT 1 / 0`), nil, errHandler, store.Committed, 1},
		{"COMMIT that is refused", func(ctx context.Context, tx pgx.Tx) error {
			err := each(anEffect, `INSERT INTO late VALUES (1)`)(ctx, tx)
			if refused := do(ctx, tx, `COMMIT`); postgres.CodeOf(refused) != "23503" {
				t.Errorf("COMMIT = %v, want a violated foreign key", refused)
			}
			return err
		}, &succeeded, nil, store.NotCommitted, 0},
		{"ROLLBACK", each(anEffect, ` Rollback; `), &succeeded, nil, store.NotCommitted, 0},
		{"ROLLBACK and an error", each(anEffect, `ROLLBACK`), nil, errHandler, store.NotCommitted, 0},
		{"ROLLBACK, then more", each(`ROLLBACK; ` + anEffect), &succeeded, nil, store.Unknown, 1},
		{"ROLLBACK, then more on the connection", func(ctx context.Context, tx pgx.Tx) error {
			return errors.Join(do(ctx, tx, `ROLLBACK`), onConn(anEffect)(ctx, tx))
		}, &succeeded, nil, store.Unknown, 1},
		{"ROLLBACK AND CHAIN, then more, then ROLLBACK", each(`ROLLBACK AND CHAIN`, anEffect, `COMMIT AND CHAIN`, `ROLLBACK`), &succeeded, nil, store.Unknown, 1},
		{"ROLLBACK with more behind it", func(ctx context.Context, tx pgx.Tx) error {
			return tx.SendBatch(ctx, statements(`ROLLBACK`, anEffect)).Close()
		}, &succeeded, nil, store.Unknown, 1},
		{"ROLLBACK, then a large object", func(ctx context.Context, tx pgx.Tx) error {
			objects := tx.LargeObjects()
			err := do(ctx, tx, `ROLLBACK`)
			_, more := objects.Create(ctx, 0)
			return errors.Join(err, more)
		}, nil, errHandler, store.Unknown, 0},
		{"the store's savepoint released", func(ctx context.Context, tx pgx.Tx) error {
			inner, err := tx.Begin(ctx) // within the store's savepoint
			return errors.Join(err, effect(ctx, inner, "key"), each(`RELEASE SAVEPOINT semel_run`, `SELECT 1 / 0`)(ctx, tx))
		}, &succeeded, nil, store.NotCommitted, 0},
	} {
		mustExec(t, pool, `TRUNCATE effects`)
		verdict, err := inTx(t, s, succeeded.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
			return row.last, errors.Join(row.failed, row.run(ctx, tx))
		})
		// If nothing was committed, a handler that fails gets its own error.
		ended := row.last != nil || row.want != store.NotCommitted
		if verdict != row.want || err == nil || errors.Is(err, postgres.ErrEnded) != ended || errors.Is(err, store.ErrTxEndedByHandler) != ended {
			t.Errorf("%s: Atomic = %v, %v, want %v, and ErrEnded and ErrTxEndedByHandler: %v", row.name, verdict, err, row.want, ended)
		}
		if !ended && !errors.Is(err, row.failed) {
			t.Errorf("%s: Atomic fails with %v, want the handler's own error", row.name, err)
		}
		check.Equal(t, effects(t, pool, "key"), row.effects, "%s: effects", row.name)
		mustBeFree(t, s, succeeded)
	}
}

// mustRefuse requires that a transaction that was ended runs nothing more.
func mustRefuse(t *testing.T, tx pgx.Tx) {
	t.Helper()
	ctx := t.Context()
	_, exec := tx.Exec(ctx, anEffect)
	rows, query := tx.Query(ctx, `SELECT 1`)
	_, begin := tx.Begin(ctx)
	_, prepare := tx.Prepare(ctx, "one", `SELECT 1`)
	_, into := tx.CopyFrom(ctx, pgx.Identifier{"effects"}, []string{"key"}, pgx.CopyFromRows([][]any{{"key"}}))
	for i, err := range []error{
		exec, query, rows.Err(), tx.QueryRow(ctx, `SELECT 1`).Scan(), begin, prepare, into, tx.SendBatch(ctx, statements(anEffect)).Close(),
	} {
		check.ErrorIs(t, err, postgres.ErrEnded, "call %d of a transaction that is over", i)
	}
	if rows.Next() {
		t.Error("a transaction that is over gives rows")
	}
}

// Commit and Rollback are refused, and the transaction goes on.
func TestHandlerCallsCommit(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{})
	last := create("key", store.Succeeded, 1)
	verdict, err := inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
		defer func() { _ = tx.Rollback(ctx) }() // as many do by habit
		check.ErrorIs(t, tx.Commit(ctx), postgres.ErrEnded, "Commit")
		check.ErrorIs(t, tx.Rollback(ctx), postgres.ErrEnded, "Rollback")
		return &last, effect(ctx, tx, "key")
	})
	check.Result(verdict, err)(t, store.Committed, "Atomic")
	check.Equal(t, current(t, s, last), last.To.Token, "the current record")
	check.Equal(t, effects(t, pool, "key"), 1, "effects")
}

// A handler ends its transaction and gets no reply. The store asks the server for the
// state of the transaction, and returns it as the verdict.
func TestHandlerLosesTheReplyToItsCommit(t *testing.T) {
	t.Parallel()
	lost, unsent := (*realtest.Proxy).EatReply, (*realtest.Proxy).CutBefore
	byName := func(request []byte) bool {
		return bytes.Contains(request, []byte("done")) && !bytes.Contains(request, []byte("COMMIT"))
	}
	for _, row := range []struct {
		name    string
		arm     func(*realtest.Proxy, realtest.Match) *realtest.Fault
		at      realtest.Match // nil: no connection is lost
		run     func(ctx context.Context, tx pgx.Tx) error
		want    store.Verdict
		effects int
		is      error
	}{
		{"COMMIT, reply lost", lost, realtest.SQL("COMMIT"), each(`COMMIT`), store.Unknown, 1, store.ErrTxEndedByHandler},
		{"COMMIT, not sent", unsent, realtest.SQL("COMMIT"), each(`COMMIT`), store.NotCommitted, 0, store.ErrInterrupted},
		{"COMMIT on the connection, reply lost", lost, realtest.SQL("COMMIT"), onConn(`COMMIT`), store.Unknown, 1, store.ErrTxEndedByHandler},
		{"COMMIT by its prepared name, reply lost", lost, byName, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Prepare(ctx, "done", `COMMIT`)
			_, executed := tx.Exec(ctx, "done")
			return errors.Join(err, executed)
		}, store.Committed, 1, store.ErrTxEndedByHandler},
		{"COMMIT, not read", nil, nil, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Query(ctx, `COMMIT`)
			return err
		}, store.Committed, 1, store.ErrTxEndedByHandler},
		{"COMMIT in a batch, not read", nil, nil, func(ctx context.Context, tx pgx.Tx) error {
			_ = tx.SendBatch(ctx, statements(`/* at last */ COMMIT`))
			return nil
		}, store.Committed, 1, store.ErrTxEndedByHandler},
		{"COMMIT AND CHAIN, and then the connection lost", unsent, realtest.SQL("INTO effects"), each(`COMMIT AND CHAIN`, anEffect), store.Unknown, 1, store.ErrTxEndedByHandler},
		{"COMMIT AND CHAIN, and then the connection lost unseen", unsent, realtest.SQL("pg_current_xact_id() ="), each(`COMMIT AND CHAIN`), store.Unknown, 1, store.ErrTxEndedByHandler},
		{"ROLLBACK and more, reply lost", lost, realtest.SQL("ROLLBACK"), each(`ROLLBACK; ` + anEffect), store.Unknown, 1, store.ErrTxEndedByHandler},
		{"ROLLBACK and more on the connection, reply lost", lost, realtest.SQL("ROLLBACK"), onConn(`ROLLBACK; ` + anEffect), store.Unknown, 1, store.ErrTxEndedByHandler},
		{"ROLLBACK, reply lost", lost, realtest.SQL("ROLLBACK"), each(`ROLLBACK`), store.NotCommitted, 0, store.ErrInterrupted},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := breaking(t)
			last := create("key", store.Succeeded, 1)
			verdict, err := inTx(t, r.store, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				err := effect(ctx, tx, "key")
				if row.arm != nil {
					row.arm(r.proxy, row.at)
				}
				_ = row.run(ctx, tx)
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
	verdict, err := inTx(t, r.store, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
		err := each(anEffect, `COMMIT`)(ctx, tx)
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
	for text, want := range map[string]store.Verdict{
		"-- a comment, not a COMMIT;\n" + anEffect:   store.NotCommitted,
		anEffect + `; UPDATE effects SET key = key;`: store.NotCommitted,
		anEffect + `; COMMIT`:                        store.Unknown,
	} {
		last := create(text, store.Succeeded, 1)
		verdict, err := inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
			server.Pause()
			defer server.Kill()
			bounded, cancel := context.WithTimeout(ctx, time.Second) // long enough to send the statement
			defer cancel()
			return &last, do(bounded, tx, text)
		})
		is := map[store.Verdict]error{store.NotCommitted: store.ErrInterrupted, store.Unknown: store.ErrTxEndedByHandler}[want]
		check.ResultIs(verdict, err)(t, want, is, "%s: Atomic", text)
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
	verdict, err := inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
		return &last, each(anEffect, `PREPARE TRANSACTION 'theirs'`)(ctx, tx)
	})
	check.ResultIs(verdict, err)(t, store.Unknown, store.ErrTxEndedByHandler, "Atomic")
	mustExec(t, pool, `COMMIT PREPARED 'theirs'`)
	check.Equal(t, effects(t, pool, "key"), 1, "effects")
}
