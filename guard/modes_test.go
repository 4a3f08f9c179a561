package guard_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/guard"
	"github.com/semelgo/semel/internal/check"
)

// TestCheckThenActWithoutALockFails: two callers that check before either has executed
// both execute. Under the lock of guard.DoTx, one of them does.
func TestCheckThenActWithoutALockFails(t *testing.T) {
	t.Parallel()
	onAll(t, suite{sql: checkThenAct[*sql.Tx], pgx: checkThenAct[pgx.Tx]})
}

func checkThenAct[Tx any](t *testing.T, d *domain[Tx]) {
	t.Helper()
	insert := d.text(`INSERT INTO effects (id) VALUES (?)`)
	var checked sync.WaitGroup
	checked.Add(2)
	both(func() {
		found := d.count("effects", "unlocked") > 0
		checked.Done()
		checked.Wait() // chance would do the same, less often
		if !found {
			d.Exec(insert, "unlocked")
		}
	})
	if n := d.count("effects", "unlocked"); n != 2 {
		t.Errorf("check-then-act had %d effects; this test must show its failure", n)
	}

	e := newEngine(t, d.Store, semel.Options{Wait: time.Minute})
	op := semel.Define("act", semel.OperationOptions[string]{})
	both(func() {
		_, _, err := guard.DoTx(t.Context(), e, op.Call(me, "locked", ""),
			func(context.Context, Tx) (string, bool, error) { return "done", d.count("effects", "locked") > 0, nil },
			func(ctx context.Context, tx Tx) (string, error) { return "done", d.addEffect(ctx, tx, "locked") })
		check.NoError(t, err)
	})
	check.Equal(t, d.count("effects", "locked"), 1, "lock, check, execute: effects")
	// Another path has made the effect, without a record.
	d.Exec(insert, "elsewhere")
	v, replayed, err := guard.DoTx(t.Context(), e, op.Call(me, "elsewhere", ""),
		func(context.Context, Tx) (string, bool, error) {
			return "found", d.count("effects", "elsewhere") > 0, nil
		},
		func(ctx context.Context, tx Tx) (string, error) { return "done", d.addEffect(ctx, tx, "elsewhere") })
	if v != "found" || !replayed || err != nil || d.count("effects", "elsewhere") != 1 {
		t.Errorf("an effect that was there: %q, %v, %v", v, replayed, err)
	}
}

// both runs f twice at the same time.
func both(f func()) {
	var all sync.WaitGroup
	for range 2 {
		all.Go(f)
	}
	all.Wait()
}

// TestUniqueIndexCannotReplayAnAnswer: the existing row answers the retry, but it has
// changed since, and it cannot tell another request with the same key from the retry. A
// record can do both.
func TestUniqueIndexCannotReplayAnAnswer(t *testing.T) {
	t.Parallel()
	d := onSQLite(t)
	own := user{"ann", "ann@example.com", "web"}
	first, _, err := guard.Insert(t.Context(), d.conn, newUser(d, own))
	check.Require(t, err)
	d.Exec(`UPDATE users SET mail = 'new@example.com' WHERE id = 'ann'`)
	retry, replayed, err := guard.Insert(t.Context(), d.conn, newUser(d, own))
	if err != nil || !replayed || retry == first {
		t.Errorf("the retry received %+v, %v; this test must show that it differs from %+v", retry, err, first)
	}
	if _, replayed, err := guard.Insert(t.Context(), d.conn, newUser(d, user{"ann", "stranger@example.com", "api"})); err != nil || !replayed {
		t.Errorf("another request: %v; this test must show that it counts as a retry", err)
	}

	e := newEngine(t, d.Store, semel.Options{})
	op := semel.Define("register", semel.OperationOptions[user]{})
	register := func(in user) (user, error) {
		u, _, err := semel.DoTx(t.Context(), e, op.Call(me, in.ID, in), func(ctx context.Context, tx *sql.Tx) (user, error) {
			u, _, err := guard.Insert(ctx, guard.SQL(tx), newUser(d, in))
			return u, err
		})
		return u, err
	}
	bob := user{"bob", "bob@example.com", "web"}
	first = must(register(bob))
	d.Exec(`UPDATE users SET mail = 'newer@example.com' WHERE id = 'bob'`)
	if retry, err := register(bob); err != nil || retry != first {
		t.Errorf("with a record the retry received %+v, %v, want %+v", retry, err, first)
	}
	if _, err := register(user{"bob", "stranger@example.com", "api"}); !isMismatch(err) {
		t.Errorf("with a record another request: %v, want ErrMismatch", err)
	}
}
