package guard_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/guard"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// settleInDoubt settles a record that err says is in doubt.
func settleInDoubt(t *testing.T, c *committer, e semel.Runner, key string, err error) {
	t.Helper()
	if !errors.Is(err, semel.ErrInDoubt) {
		t.Fatalf("%s: got %v, want ErrInDoubt", key, err)
	}
	r, _, err := admin.Get(t.Context(), e, "healed", me, key)
	check.Require(t, err)
	now, err := c.healed.Settle(t.Context(), e, r, semel.Keep, "the test")
	if err != nil || now.State != store.Failed {
		t.Fatalf("%s: settled as %v, %v", key, now.State, err)
	}
}

// TestSettle: the row decides, a record that has changed is not resolved, and wrong
// arguments are errors.
func TestSettle(t *testing.T) {
	t.Parallel()
	d := onSQLite(t)
	w := newApart(t, d, true)
	doubt := func(key string) store.Record {
		_, _, err := semel.Do(t.Context(), w.e, w.call(key), func(context.Context) (receipt, error) { return receipt{}, errRefused })
		r := w.state(key)
		if !errors.Is(err, semel.ErrOutcomeUnknown) || r.State != store.InDoubt {
			t.Fatalf("%v, and the record is %v", err, r.State)
		}
		return r
	}
	settle := func(r store.Record, then semel.OnError) (store.State, error) {
		now, err := w.rows.Settle(t.Context(), w.e, r, then, "the test")
		return now.State, err
	}
	first := doubt("a")
	check.Result(settle(first, semel.Release))(t, store.Pending, "to Pending")
	// The next attempt may commit, and is in doubt again: the decision about the first
	// attempt does not hold for it.
	second := doubt("a")
	if _, err := settle(first, semel.Keep); !errors.Is(err, admin.ErrNotInDoubt) {
		t.Errorf("with an old record: %v, want ErrNotInDoubt", err)
	}
	check.Result(settle(second, semel.Release))(t, store.Pending, "the second attempt")
	w.want("a")
	if _, err := settle(w.state("a"), semel.Keep); !errors.Is(err, admin.ErrNotInDoubt) {
		t.Errorf("a final record: %v, want ErrNotInDoubt", err)
	}
	for _, wrong := range []store.Record{{Operation: "other", Token: store.Token{State: store.InDoubt}}, doubt("b")} {
		if _, err := settle(wrong, 7); !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("a wrong call: %v, want ErrInvalid", err)
		}
	}
}

// TestHealFromTheRow: a retry receives the result of an attempt whose record does not
// have it, because its process died after the COMMIT.
func TestHealFromTheRow(t *testing.T) {
	t.Parallel()
	for name, heals := range map[string]bool{"Heal": true, "Fenced": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newApart(t, onSQLite(t), heals)
			v, replayed, err := semel.Do(t.Context(), w.e, w.call("a"), func(ctx context.Context) (receipt, error) {
				must(w.transfer(ctx, "a"))
				return receipt{}, errRefused
			})
			if heals && (v != (receipt{7, "a"}) || err != nil) {
				t.Errorf("the attempt itself: %+v, %v, %v", v, replayed, err)
			}
			w.want("a")
		})
	}
}

// TestSeal: sealing is idempotent, never lowers the row, and returns what was committed.
func TestSeal(t *testing.T) {
	t.Parallel()
	w := newApart(t, onSQLite(t), false)
	seal := func(key string, n uint32) (receipt, bool) {
		v, committed, err := w.rows.Seal(t.Context(), me, key, n)
		check.NoError(t, err)
		return v, committed
	}
	for _, n := range []uint32{3, 3, 2, 0} {
		if _, committed := seal("a", n); committed {
			t.Error("a sealed row counts as committed")
		}
	}
	if _, _, err := w.do(t.Context(), "a"); !errors.Is(err, guard.ErrSealed) || semel.VerdictOf(err) != store.NotCommitted {
		t.Errorf("attempt 1: %v, want ErrSealed", err)
	}
	if _, _, err := w.do(t.Context(), "a"); !errors.Is(err, guard.ErrSealed) {
		t.Errorf("attempt 2: %v, want ErrSealed", err)
	}
	w.want("a") // attempt 3
	if v, committed := seal("a", 9); !committed || v != (receipt{7, "a"}) {
		t.Errorf("after the commit: %+v, %v", v, committed)
	}
	w.want("a")
}
