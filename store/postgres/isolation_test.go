package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// levels are those above read committed.
func levels() []pgx.TxIsoLevel { return []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} }

// Inline transactions run at the configured level, for every default of the
// session; the end of a leased attempt is refused there.
func TestIsolation(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	mustExec(t, pool, `ALTER ROLE CURRENT_USER IN DATABASE `+pgx.Identifier{pool.Config().ConnConfig.Database}.Sanitize()+
		` SET default_transaction_isolation = 'serializable'`)
	pool.Reset()
	for _, level := range append(levels(), pgx.ReadCommitted, "") {
		s := newStore(t, pool, postgres.Options{Isolation: level})
		last := create("at "+string(level), store.Succeeded, 1)
		var got string
		verdict, err := inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
			return &last, tx.QueryRow(ctx, `SHOW transaction_isolation`).Scan(&got)
		})
		want := string(level)
		if level == "" {
			want = "read committed"
		}
		if verdict != store.Committed || err != nil || got != want || current(t, s, last) != last.To.Token {
			t.Errorf("Atomic = %v, %v at level %q, want %q", verdict, err, got, want)
		}
		again := move(last, store.Failed)
		verdict, err = s.Atomic(t.Context(), last.To.ID, false,
			func(context.Context, pgx.Tx, store.SwapResult) (*store.Change, error) { return &again, nil })
		refused := verdict == store.NotCommitted && errors.Is(err, postgres.ErrIsolation)
		if leased := want == "read committed"; leased == refused {
			t.Errorf("Atomic without the right, at %q = %v, %v", want, verdict, err)
		}
	}
}

// A transaction that PostgreSQL aborts because of other transactions is a conflict, also if
// the handler returns a change, and nothing of it is stored.
func TestConflict(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	mustExec(t, pool, `INSERT INTO effects VALUES ('counter')`)
	last, failed := create("key", store.Succeeded, 1), create("key", store.Failed, 1)
	for name, say := range map[string]func(err error) (*store.Change, error){
		"undone":      func(error) (*store.Change, error) { return &last, nil },
		"told":        func(err error) (*store.Change, error) { return nil, err },
		"wrapped":     func(err error) (*store.Change, error) { return nil, fmt.Errorf("%w: %w", errHandler, err) },
		"passed over": func(error) (*store.Change, error) { return &last, nil },
		"replaced":    func(error) (*store.Change, error) { return nil, errHandler },
		"lost":        func(error) (*store.Change, error) { return nil, nil },
		"to be kept":  func(err error) (*store.Change, error) { return &failed, err },
	} {
		for _, level := range levels() {
			s := newStore(t, pool, postgres.Options{Isolation: level})
			verdict, err := inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				if err := effect(ctx, tx, "key"); err != nil {
					return nil, err
				}
				mustExec(t, pool, `UPDATE effects SET key = key`) // after the transaction's snapshot
				inner, err := tx.Begin(ctx)
				if err != nil {
					return nil, err
				}
				_, err = inner.Exec(ctx, `UPDATE effects SET key = key WHERE key = 'counter'`)
				if postgres.CodeOf(err) != "40001" {
					t.Errorf("the handler meets %v, want a serialization failure", err)
				}
				if name == "undone" { // the transaction could go on
					check.NoError(t, inner.Rollback(ctx), "%s", name)
				}
				return say(err)
			})
			check.ResultIs(verdict, err)(t, store.NotCommitted, store.ErrConflict, "%s at %q: Atomic", name, level)
			if n := effects(t, pool, "key"); n != 0 || current(t, s, last) != (store.Token{}) {
				t.Errorf("%s at %q: %d effects and %+v, want nothing", name, level, n, current(t, s, last))
			}
		}
	}
}

// Two serializable transactions that each write what the other has read: one of
// them is in conflict, at its COMMIT, and succeeds when it is run again.
func TestWriteSkew(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{Isolation: pgx.Serializable})
	run := func(key string, between func()) (store.Verdict, error) {
		last := create(key, store.Succeeded, 1)
		return inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
			var n int
			if err := tx.QueryRow(ctx, `SELECT count(*) FROM effects`).Scan(&n); err != nil {
				return nil, err
			}
			if err := effect(ctx, tx, fmt.Sprint(n)); err != nil {
				return nil, err
			}
			between()
			return &last, nil
		})
	}
	verdict, err := run("first", func() {
		if verdict, err := run("second", func() {}); verdict != store.Committed {
			t.Errorf("the second Atomic = %v, %v, want Committed", verdict, err)
		}
	})
	check.ResultIs(verdict, err)(t, store.NotCommitted, store.ErrConflict, "the first Atomic")
	if verdict, err := run("first", func() {}); verdict != store.Committed {
		t.Errorf("run again, Atomic = %v, %v, want Committed", verdict, err)
	}
	if zeros, ones := effects(t, pool, "0"), effects(t, pool, "1"); zeros != 1 || ones != 1 {
		t.Errorf("%d counted none and %d one before, want each once, as one after the other", zeros, ones)
	}
}

// In a caller's transaction above read committed, a later write of another
// transaction is a conflict, because reading the record would give an outdated
// answer.
func TestSwapTxConflict(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{})
	for _, level := range levels() {
		existing := create("stored at "+string(level), store.Pending, 1)
		made := create("made at "+string(level), store.Pending, 1)
		mustForce(t, s, existing)
		for _, c := range []store.Change{move(existing, store.InProgress), made} {
			tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
			check.Require(t, err)
			mustExec(t, tx, `SELECT FROM effects`) // takes the snapshot
			theirs := c
			theirs.To.Owner++
			mustForce(t, s, theirs)
			answers, err := s.SwapTx(t.Context(), tx, []store.Change{c})
			check.ErrorIs(t, err, store.ErrConflict, "SwapTx at %q = %+v", level, answers)
			check.Require(t, tx.Rollback(t.Context()))
		}
	}
}
