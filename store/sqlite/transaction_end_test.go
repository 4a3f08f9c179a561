package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

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

// A handler that ends the transaction itself, or does not notice its end, gets an
// error, and the verdict is true.
func TestHandlerEndsTheTransaction(t *testing.T) {
	last := create("key", store.Succeeded, 1)
	for _, row := range []struct {
		name string
		run  func(ctx context.Context, tx *sql.Tx) (*store.Change, error)
		// want is the verdict, and blind that with a driver that does not count
		// commits.
		want, blind store.Verdict
		effects     int
		plain       bool // the handler's own error is enough
	}{
		{
			name: "tx.Commit",
			run: func(ctx context.Context, tx *sql.Tx) (*store.Change, error) {
				return &last, errors.Join(effect(ctx, tx, "key"), tx.Commit())
			},
			want: store.Committed, blind: store.Committed, effects: 1,
		},
		{
			name: "tx.Commit and an error",
			run: func(ctx context.Context, tx *sql.Tx) (*store.Change, error) {
				return nil, errors.Join(errHandler, effect(ctx, tx, "key"), tx.Commit())
			},
			want: store.Committed, blind: store.Committed, effects: 1,
		},
		{
			name: "tx.Rollback",
			run: func(ctx context.Context, tx *sql.Tx) (*store.Change, error) {
				return &last, errors.Join(effect(ctx, tx, "key"), tx.Rollback())
			},
			want: store.NotCommitted, blind: store.NotCommitted,
		},
		{
			name: "tx.Rollback and an error",
			run: func(ctx context.Context, tx *sql.Tx) (*store.Change, error) {
				return nil, errors.Join(errHandler, effect(ctx, tx, "key"), tx.Rollback())
			},
			want: store.NotCommitted, blind: store.NotCommitted, plain: true,
		},
		{
			name: "COMMIT as SQL, then more",
			run: func(ctx context.Context, tx *sql.Tx) (*store.Change, error) {
				return &last, errors.Join(effect(ctx, tx, "key"), do(ctx, tx, `COMMIT`), effect(ctx, tx, "key"))
			},
			want: store.Committed, blind: store.Committed, effects: 2,
		},
		{
			name: "COMMIT and BEGIN as SQL",
			run: func(ctx context.Context, tx *sql.Tx) (*store.Change, error) {
				return &last, errors.Join(effect(ctx, tx, "key"), do(ctx, tx, `COMMIT; BEGIN`), effect(ctx, tx, "key"))
			},
			want: store.Committed, blind: store.Committed, effects: 1,
		},
		{
			name: "COMMIT and BEGIN as SQL, and an error",
			run: func(ctx context.Context, tx *sql.Tx) (*store.Change, error) {
				return nil, errors.Join(errHandler, effect(ctx, tx, "key"), do(ctx, tx, `COMMIT; BEGIN`))
			},
			want: store.Committed, blind: store.Committed, effects: 1,
		},
		{
			name: "ROLLBACK as SQL",
			run: func(ctx context.Context, tx *sql.Tx) (*store.Change, error) {
				return &last, errors.Join(effect(ctx, tx, "key"), do(ctx, tx, `ROLLBACK`))
			},
			want: store.NotCommitted, blind: store.Unknown,
		},
		{
			name: "ROLLBACK as SQL, then more",
			run: func(ctx context.Context, tx *sql.Tx) (*store.Change, error) {
				return &last, errors.Join(effect(ctx, tx, "key"), do(ctx, tx, `ROLLBACK`), effect(ctx, tx, "key"))
			},
			want: store.Unknown, blind: store.Unknown, effects: 1,
		},
		{
			name: "an interrupt passed over",
			run: func(ctx context.Context, tx *sql.Tx) (*store.Change, error) {
				err := effect(ctx, tx, "key")
				_ = interrupt(ctx, tx)
				return &last, err
			},
			want: store.NotCommitted, blind: store.Unknown,
		},
		{
			name: "an interrupt passed over, then more",
			run: func(ctx context.Context, tx *sql.Tx) (*store.Change, error) {
				_ = interrupt(ctx, tx)
				return &last, effect(ctx, tx, "key")
			},
			want: store.Unknown, blind: store.Unknown, effects: 1,
		},
		{
			name: "an interrupt",
			run: func(ctx context.Context, tx *sql.Tx) (*store.Change, error) {
				return nil, errors.Join(errHandler, effect(ctx, tx, "key"), interrupt(ctx, tx))
			},
			want: store.NotCommitted, blind: store.NotCommitted, plain: true,
		},
		{
			name: "an interrupt whose failure is to be kept",
			run: func(ctx context.Context, tx *sql.Tx) (*store.Change, error) {
				failed := create("key", store.Failed, 1)
				return &failed, errors.Join(effect(ctx, tx, "key"), interrupt(ctx, tx))
			},
			want: store.NotCommitted, blind: store.NotCommitted,
		},
	} {
		for _, counts := range []bool{true, false} {
			t.Run(fmt.Sprint(row.name, ", commits counted ", counts), func(t *testing.T) {
				b := openFaulty(t, counts)
				s := sqlite.New(b.DB)
				want := row.blind
				if counts {
					want = row.want
				}
				verdict, err := s.Atomic(t.Context(), last.To.ID, true,
					func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
						return row.run(ctx, tx)
					})
				if verdict != want || err == nil || errors.Is(err, sqlite.ErrEnded) == row.plain {
					t.Errorf("Atomic = %v, %v, want %v and ErrEnded", verdict, err, want)
				}
				if row.plain && !errors.Is(err, errHandler) {
					t.Errorf("Atomic fails with %v, want the handler's own error", err)
				}
				if n := effects(t, b.DB, "key"); n != row.effects {
					t.Errorf("%d effects, want %d", n, row.effects)
				}
				mustBeClean(t, b.DB, s, last)
			})
		}
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
	if n := effects(t, db, "next"); n != 1 {
		t.Errorf("the next Atomic has %d effects", n)
	}
}

// A handler may ignore an error of one statement that SQLite undoes alone: the
// transaction continues.
func TestHandlerIgnoresARejectedStatement(t *testing.T) {
	db := open(t)
	s := sqlite.New(db)
	mustExec(t, db, `CREATE UNIQUE INDEX one_effect ON effects (key)`)
	last := create("key", store.Succeeded, 1)
	verdict, err := s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
			if err := effect(ctx, tx, "key"); err != nil {
				return nil, err
			}
			if err := effect(ctx, tx, "key"); err == nil {
				t.Error("the second effect is not refused")
			}
			return &last, nil
		})
	if verdict != store.Committed || err != nil {
		t.Errorf("Atomic = %v, %v, want Committed", verdict, err)
	}
	if n := effects(t, db, "key"); n != 1 || current(t, s, last) != last.To.Token {
		t.Errorf("%d effects and %+v, want both", n, current(t, s, last))
	}
}

// A statement that the handler left open prevents the end of its transaction.
func TestHandlerLeavesAStatementOpen(t *testing.T) {
	db := open(t)
	s := sqlite.New(db)
	last := create("key", store.Succeeded, 1)
	verdict, err := s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
			rows, err := tx.QueryContext(ctx, `INSERT INTO effects VALUES ('key'), ('key') RETURNING key`)
			if err == nil && !rows.Next() {
				t.Error("no row")
			}
			return &last, err
		})
	if verdict != store.NotCommitted || err == nil || errors.Is(err, sqlite.ErrEnded) {
		t.Errorf("Atomic = %v, %v, want NotCommitted and an error that is not ErrEnded", verdict, err)
	}
	if n := effects(t, db, "key"); n != 0 {
		t.Errorf("%d effects, want none", n)
	}
	mustBeClean(t, db, s, last)
}

// SQLite rolls back by itself when the disk is full.
func TestDiskFull(t *testing.T) {
	for _, inHandler := range []bool{true, false} {
		b := openFaulty(t, true)
		s := sqlite.New(b.DB)
		last := create("key", store.Succeeded, 1)
		last.To.Outcome = make([]byte, 1<<20)
		verdict, err := s.Atomic(t.Context(), last.To.ID, true,
			func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
				if err := errors.Join(effect(ctx, tx, "key"), do(ctx, tx, `PRAGMA max_page_count = 1`)); err != nil {
					return nil, err
				}
				if inHandler {
					return nil, do(ctx, tx, `INSERT INTO effects VALUES (zeroblob(1000000))`)
				}
				return &last, nil
			})
		if verdict != store.NotCommitted || sqlite.CodeOf(err) != 13 {
			t.Errorf("Atomic on a full disk, in the handler %v = %v, %v, want NotCommitted and SQLITE_FULL", inHandler, verdict, err)
		}
		if n := effects(t, b.DB, "key"); n != 0 || current(t, s, last) != (store.Token{}) {
			t.Errorf("%d effects and %+v, want nothing", n, current(t, s, last))
		}
	}
}
