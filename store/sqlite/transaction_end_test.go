package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

var errHandler = errors.New("the handler's error")

// interrupt makes SQLite roll the transaction back, as it does when a writing
// statement is interrupted. It tries until a statement was interrupted while it
// ran, which shows in the loss of the transaction's earlier writes.
func interrupt(ctx context.Context, tx *sql.Tx) error {
	// Not endless, because an interrupt that comes too early is lost.
	const long = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300000) INSERT INTO effects SELECT i FROM n`
	if err := effect(ctx, tx, "interrupt"); err != nil {
		return err
	}
	for bound := time.Millisecond; ; bound *= 2 {
		short, cancel := context.WithTimeout(ctx, bound)
		_, broken := tx.ExecContext(short, long)
		cancel()
		var still int
		err := tx.QueryRowContext(ctx, `SELECT count(*) FROM effects WHERE key = 'interrupt'`).Scan(&still)
		if err != nil || still == 0 {
			return errors.Join(err, broken)
		}
	}
}

// step is one thing that a handler does in its transaction.
type step func(ctx context.Context, tx *sql.Tx) error

func anEffect(ctx context.Context, tx *sql.Tx) error        { return effect(ctx, tx, "key") }
func commitTx(_ context.Context, tx *sql.Tx) error          { return tx.Commit() }
func rollbackTx(_ context.Context, tx *sql.Tx) error        { return tx.Rollback() }
func fails(context.Context, *sql.Tx) error                  { return errHandler }
func ignoreInterrupt(ctx context.Context, tx *sql.Tx) error { _ = interrupt(ctx, tx); return nil }

func query(text string) step {
	return func(ctx context.Context, tx *sql.Tx) error { return do(ctx, tx, text) }
}

// handle runs a transaction whose handler does all the steps and returns last.
func handle(t *testing.T, s *sqlite.Store, last *store.Change, steps ...step) (store.Verdict, error) {
	t.Helper()
	return s.Atomic(t.Context(), create("key", store.Absent, 0).To.ID, true,
		func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
			var errs []error
			for _, step := range steps {
				errs = append(errs, step(ctx, tx))
			}
			return last, errors.Join(errs...)
		})
}

// A handler that ends the transaction itself, or does not notice its end, gets an
// error, and the verdict is true.
func TestHandlerEndsTheTransaction(t *testing.T) {
	const committed, notCommitted, unknown = store.Committed, store.NotCommitted, store.Unknown
	last, failed := create("key", store.Succeeded, 1), create("key", store.Failed, 1)
	for _, row := range []struct {
		name  string
		last  *store.Change
		steps []step
		// want is the verdict, and blind that with a driver that does not count
		// commits.
		want, blind store.Verdict
		effects     int
		plain       bool // the handler's own error is enough
	}{
		{"tx.Commit", &last, []step{anEffect, commitTx}, committed, committed, 1, false},
		{"tx.Commit and an error", nil, []step{fails, anEffect, commitTx}, committed, committed, 1, false},
		{"tx.Rollback", &last, []step{anEffect, rollbackTx}, notCommitted, notCommitted, 0, false},
		{"tx.Rollback and an error", nil, []step{fails, anEffect, rollbackTx}, notCommitted, notCommitted, 0, true},
		{"COMMIT, then more", &last, []step{anEffect, query(`COMMIT`), anEffect}, committed, committed, 2, false},
		{"COMMIT and BEGIN", &last, []step{anEffect, query(`COMMIT; BEGIN`), anEffect}, committed, committed, 1, false},
		{"COMMIT, BEGIN and an error", nil, []step{fails, anEffect, query(`COMMIT; BEGIN`)}, committed, committed, 1, false},
		{"ROLLBACK", &last, []step{anEffect, query(`ROLLBACK`)}, notCommitted, unknown, 0, false},
		{"ROLLBACK, then more", &last, []step{anEffect, query(`ROLLBACK`), anEffect}, unknown, unknown, 1, false},
		{"an ignored interrupt", &last, []step{anEffect, ignoreInterrupt}, notCommitted, unknown, 0, false},
		{"an ignored interrupt, then more", &last, []step{ignoreInterrupt, anEffect}, unknown, unknown, 1, false},
		{"an interrupt", nil, []step{fails, anEffect, interrupt}, notCommitted, notCommitted, 0, true},
		{"an interrupt whose failure is to be kept", &failed, []step{anEffect, interrupt}, notCommitted, notCommitted, 0, false},
	} {
		for _, counts := range []bool{true, false} {
			t.Run(fmt.Sprint(row.name, ", commits counted ", counts), func(t *testing.T) {
				b := openFaulty(t, counts)
				s := sqlite.New(b.DB, sqlite.Options{})
				want := row.blind
				if counts {
					want = row.want
				}
				verdict, err := handle(t, s, row.last, row.steps...)
				if verdict != want || err == nil || errors.Is(err, sqlite.ErrEnded) == row.plain {
					t.Errorf("Atomic = %v, %v, want %v and ErrEnded", verdict, err, want)
				}
				if row.plain && !errors.Is(err, errHandler) {
					t.Errorf("Atomic fails with %v, want the handler's own error", err)
				}
				check.Equal(t, effects(t, b.DB, "key"), row.effects, "effects")
				mustBeClean(t, b.DB, s, last)
			})
		}
	}
}

// TestHandlerInItsTransaction: the handler may use the transaction as its own.
func TestHandlerInItsTransaction(t *testing.T) {
	last := create("key", store.Succeeded, 1)
	isRejected := func(ctx context.Context, tx *sql.Tx) error { // SQLite undoes this statement alone
		if err := anEffect(ctx, tx); err == nil {
			return errors.New("the second effect is not rejected")
		}
		return nil
	}
	for name, row := range map[string]struct {
		prepare string
		last    *store.Change
		steps   []step
		effects int
	}{
		"savepoints, one left open": {"", &last, []step{
			anEffect, query(`SAVEPOINT mine`), anEffect, query(`ROLLBACK TO mine`), anEffect,
		}, 2},
		"rejected statement": {`CREATE UNIQUE INDEX one_effect ON effects (key)`, &last, []step{anEffect, isRejected}, 1},
		"no last change":     {"", nil, []step{anEffect}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			s := sqlite.New(db, sqlite.Options{})
			if row.prepare != "" {
				mustExec(t, db, row.prepare)
			}
			check.Result(handle(t, s, row.last, row.steps...))(t, store.Committed, "Atomic")
			if n := effects(t, db, "key"); n != row.effects || (current(t, s, last) == last.To.Token) != (row.last != nil) {
				t.Errorf("%d effects and %+v, want %d", n, current(t, s, last), row.effects)
			}
		})
	}
}

// TestHandlerWithPreparedStatementsOfTheDatabase: they work in its transaction.
func TestHandlerWithPreparedStatementsOfTheDatabase(t *testing.T) {
	db := open(t)
	stmt, err := db.PrepareContext(t.Context(), `INSERT INTO effects VALUES (?)`)
	check.Require(t, err)
	defer stmt.Close()
	last := create("key", store.Succeeded, 1)
	verdict, err := handle(t, sqlite.New(db, sqlite.Options{}), &last, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.StmtContext(ctx, stmt).ExecContext(ctx, "key")
		return err
	})
	if verdict != store.Committed || err != nil || effects(t, db, "key") != 1 {
		t.Errorf("Atomic = %v, %v, want Committed", verdict, err)
	}
}

// TestHandlerFailures: nothing of the transaction is left.
func TestHandlerFailures(t *testing.T) {
	last, other, large := create("key", store.Succeeded, 1), create("other", store.Succeeded, 1), create("key", store.Succeeded, 1)
	large.To.Outcome = make([]byte, 1<<20)
	full := query(`PRAGMA max_page_count = 1`) // SQLite rolls back by itself when the disk is full
	openStatement := func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `INSERT INTO effects VALUES ('key'), ('key') RETURNING key`) //nolint:sqlclosecheck // left open
		if err == nil && !rows.Next() {
			err = errors.Join(errors.New("no row"), rows.Err())
		}
		return err
	}
	for name, row := range map[string]struct {
		last  *store.Change
		steps []step
		code  int // SQLite's; zero: any
	}{
		"open statement":             {&last, []step{openStatement}, 0},
		"last change of another one": {&other, []step{anEffect}, 0},
		"disk full in the handler":   {nil, []step{anEffect, full, query(`INSERT INTO effects VALUES (zeroblob(1000000))`)}, 13},
		"disk full for the outcome":  {&large, []step{anEffect, full}, 13},
		"deferred constraint":        {&last, []step{anEffect, query(`INSERT INTO children VALUES (7)`)}, 787},
	} {
		t.Run(name, func(t *testing.T) {
			b := openFaulty(t, true)
			s := sqlite.New(b.DB, sqlite.Options{})
			mustExec(t, b.DB, `CREATE TABLE parents (id INTEGER PRIMARY KEY);
CREATE TABLE children (parent INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED)`)
			verdict, err := handle(t, s, row.last, row.steps...)
			if verdict != store.NotCommitted || err == nil || errors.Is(err, sqlite.ErrEnded) || errors.Is(err, store.ErrSuperseded) {
				t.Errorf("Atomic = %v, %v, want NotCommitted and an error of its own", verdict, err)
			}
			if row.code != 0 && sqlite.CodeOf(err) != row.code {
				t.Errorf("Atomic fails with %v, want code %d", err, row.code)
			}
			if n := effects(t, b.DB, "key"); n != 0 || current(t, s, other) != (store.Token{}) {
				t.Errorf("%d effects and %+v, want nothing", n, current(t, s, other))
			}
			if row.code != 13 {
				mustBeClean(t, b.DB, s, last)
			}
		})
	}
}

func do(ctx context.Context, tx *sql.Tx, query string) error {
	_, err := tx.ExecContext(ctx, query)
	return err
}

// mustBeClean requires that nothing is left of a transaction, and that the next one
// works.
func mustBeClean(t *testing.T, db *sql.DB, s *sqlite.Store, last store.Change) {
	t.Helper()
	if token := current(t, s, last); token != (store.Token{}) {
		t.Errorf("%+v is current, want no outcome", token)
	}
	var marks int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM semel_guard`).Scan(&marks); err != nil || marks != 0 {
		t.Errorf("%d marks are left, %v", marks, err)
	}
	next := create("next", store.Succeeded, 1)
	if verdict, err := finish(t, s, "next", &next); err != nil {
		t.Errorf("the next Atomic = %v, %v", verdict, err)
	}
	check.Equal(t, effects(t, db, "next"), 1, "the next Atomic: effects")
}
