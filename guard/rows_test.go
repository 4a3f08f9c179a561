package guard_test

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/guard"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// receipt is the result of the operations with guard rows.
type receipt struct {
	Number int
	For    string
}

// apart is an operation whose records are in memory and whose domain is in a database.
type apart[Tx any] struct {
	d    *domain[Tx]
	rows *guard.Rows[receipt, Tx]
	e    semel.Runner
	op   *semel.Operation[string]
}

func newApart[Tx any](t *testing.T, d *domain[Tx], heals bool) *apart[Tx] {
	t.Helper()
	w := &apart[Tx]{d: d, rows: guard.NewRows[receipt](d.db, "transfer"), e: inMemory(t, semel.Options{})}
	policy := w.rows.Fenced()
	if heals {
		policy = w.rows.Heal()
	}
	w.op = semel.Define("transfer", semel.OperationOptions[string]{Policy: policy})
	return w
}

func (w *apart[Tx]) call(key string) semel.Call { return w.op.Call(me, key, "") }

// transfer has one effect.
func (w *apart[Tx]) transfer(ctx context.Context, key string) (receipt, error) {
	return w.rows.InTx(ctx, func(ctx context.Context, tx Tx) (receipt, error) {
		return receipt{7, key}, w.d.addEffect(ctx, tx, key)
	})
}

func (w *apart[Tx]) do(ctx context.Context, key string) (receipt, bool, error) {
	return semel.Do(ctx, w.e, w.call(key), func(ctx context.Context) (receipt, error) { return w.transfer(ctx, key) })
}

// want checks that the key has one effect, and that a retry receives the result.
func (w *apart[Tx]) want(key string) {
	w.d.t.Helper()
	if v, _, err := w.do(w.d.t.Context(), key); err != nil || v != (receipt{7, key}) {
		w.d.t.Errorf("%s: a retry received %+v, %v", key, v, err)
	}
	if n := w.d.count("effects", key); n != 1 {
		w.d.t.Errorf("%s has %d effects", key, n)
	}
}

func (w *apart[Tx]) state(key string) store.Record {
	w.d.t.Helper()
	r, _, err := admin.Get(w.d.t.Context(), w.e, "transfer", me, key)
	if err != nil {
		w.d.t.Error(err)
	}
	return r
}

// TestRowsInTx: effect and guard row are committed together, or neither is; errors are
// proofs; the row of a purged record still answers.
func TestRowsInTx(t *testing.T) {
	t.Parallel()
	onAll(t, suite{sql: commitRows[*sql.Tx], pgx: commitRows[pgx.Tx]})
}

func commitRows[Tx any](t *testing.T, d *domain[Tx]) {
	t.Helper()
	w := newApart(t, d, false)
	ctx := t.Context()
	failing := func(key string, err error) error {
		_, _, told := semel.Do(ctx, w.e, w.call(key), func(ctx context.Context) (receipt, error) {
			return w.rows.InTx(ctx, func(ctx context.Context, tx Tx) (receipt, error) {
				return receipt{}, errors.Join(err, d.addEffect(ctx, tx, key))
			})
		})
		return told
	}
	if err := failing("a", errRefused); !errors.Is(err, errRefused) || semel.VerdictOf(err) != store.NotCommitted {
		t.Errorf("an error of the function: %v, want a proof", err)
	}
	w.want("a")
	w.want("a")
	for range 2 {
		var failure *semel.Failure
		if err := failing("b", semel.Final(errRefused)); !errors.As(err, &failure) || d.count("effects", "b") != 0 {
			t.Errorf("a final error: %v, want the stored failure", err)
		}
	}
	if got, want := w.state("b").State, store.Failed; got != want {
		t.Errorf("after a final error the record is %v, want %v", got, want)
	}
	// Records may be lost or purged: another engine has no record of the key.
	other := newApart(t, d, false)
	other.want("a")
	// A statement that fails, and whose error is ignored, must not be committed by half.
	_, _, err := semel.Do(ctx, w.e, w.call("c"), func(ctx context.Context) (receipt, error) {
		return w.rows.InTx(ctx, func(ctx context.Context, tx Tx) (receipt, error) {
			_ = d.ExecTx(ctx, tx, `INSERT INTO missing VALUES (1)`)
			return receipt{7, "c"}, d.addEffect(ctx, tx, "c")
		})
	})
	if n := d.count("effects", "c"); (err == nil) != (n == 1) || err != nil && d.dialect != guard.PostgreSQL {
		t.Errorf("an ignored error: %v with %d effects", err, n)
	}
	for _, wrong := range []func() error{
		func() error { _, err := w.transfer(ctx, "x"); return err },
		func() error {
			foreign := semel.Define("other", semel.OperationOptions[string]{})
			_, _, err := semel.Do(ctx, w.e, foreign.Call(me, "x", ""), func(ctx context.Context) (receipt, error) { return w.transfer(ctx, "x") })
			return err
		},
	} {
		if err := wrong(); err == nil || !strings.Contains(err.Error(), "ctx") && !strings.Contains(err.Error(), "Rows") || d.count("effects", "x") != 0 {
			t.Errorf("a wrong call: %v", err)
		}
	}
}

// TestRowsOnceInOneAttempt: a second InTx of the same key has no second effect, and a
// panic leaves none.
func TestRowsOnceInOneAttempt(t *testing.T) {
	t.Parallel()
	onAll(t, suite{sql: repeatInTx[*sql.Tx], pgx: repeatInTx[pgx.Tx]})
}

func repeatInTx[Tx any](t *testing.T, d *domain[Tx]) {
	t.Helper()
	w := newApart(t, d, false)
	v, _, err := semel.Do(t.Context(), w.e, w.call("a"), func(ctx context.Context) (receipt, error) {
		if _, err := w.transfer(ctx, "a"); err != nil {
			return receipt{}, err
		}
		return w.transfer(ctx, "a")
	})
	if v != (receipt{7, "a"}) || err != nil || d.count("effects", "a") != 1 {
		t.Errorf("got %+v, %v with %d effects", v, err, d.count("effects", "a"))
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic ended")
			}
		}()
		_, _, _ = semel.Do(t.Context(), w.e, w.call("b"), func(ctx context.Context) (receipt, error) {
			return w.rows.InTx(ctx, func(ctx context.Context, tx Tx) (receipt, error) {
				must(0, d.addEffect(ctx, tx, "b"))
				panic("in the function")
			})
		})
	}()
	w.want("b")
	// A caller that hangs up before the COMMIT.
	ctx, hangUp := context.WithCancel(t.Context())
	_, _, err = semel.Do(ctx, w.e, w.call("c"), func(ctx context.Context) (receipt, error) {
		return w.rows.InTx(ctx, func(ctx context.Context, tx Tx) (receipt, error) {
			err := d.addEffect(ctx, tx, "c")
			hangUp()
			return receipt{7, "c"}, err
		})
	})
	if err == nil || d.count("effects", "c") != 0 {
		t.Errorf("after the caller hung up: %v with %d effects", err, d.count("effects", "c"))
	}
	w.want("c")
}

// TestSealAgainstLateCommits: the function of an attempt returns while its transaction
// is still open, and the COMMIT comes before, during or after the record is settled.
// Failed is told only if the effect did not happen and cannot happen later.
func TestSealAgainstLateCommits(t *testing.T) {
	t.Parallel()
	onAll(t, suite{sql: sealLateCommits[*sql.Tx], pgx: sealLateCommits[pgx.Tx]})
}

func sealLateCommits[Tx any](t *testing.T, d *domain[Tx]) {
	t.Helper()
	w := newApart(t, d, true)
	failed, succeeded := 0, 0
	for round := range rounds(500) {
		key := strconv.Itoa(round)
		if round%2 == 0 { // the late commit is that of attempt 2
			_, _, _ = semel.Do(t.Context(), w.e, w.call(key), func(context.Context) (receipt, error) {
				return receipt{}, semel.NotCommitted(errRefused)
			})
		}
		release, committed := make(chan struct{}), make(chan error, 1)
		_, _, err := semel.Do(t.Context(), w.e, w.call(key), func(ctx context.Context) (receipt, error) {
			opened := make(chan struct{})
			pause := func() {
				close(opened)
				<-release
			}
			go func() {
				if d.dialect == guard.SQLite { // an open transaction would exclude the seal
					pause()
				}
				// The attempt's context ends with the function, which a goroutine can ignore.
				_, err := w.rows.InTx(context.WithoutCancel(ctx), func(ctx context.Context, tx Tx) (receipt, error) {
					err := d.addEffect(ctx, tx, key)
					if d.dialect != guard.SQLite {
						pause()
					}
					return receipt{7, key}, err
				})
				committed <- err
			}()
			<-opened
			return receipt{}, errRefused
		})
		if !errors.Is(err, semel.ErrOutcomeUnknown) {
			t.Fatalf("got %v, want ErrOutcomeUnknown", err)
		}
		var late error
		switch round % 3 {
		case 0: // before
			close(release)
			late = <-committed
		case 1: // during
			close(release)
		}
		now, err := w.rows.Settle(t.Context(), w.e, w.state(key), semel.Keep, "the test")
		check.Require(t, err, "settle")
		switch round % 3 {
		case 1:
			late = <-committed
		case 2:
			close(release)
			late = <-committed
		}
		_, _, told := w.do(t.Context(), key)
		n := d.count("effects", key)
		switch {
		case now.State == store.Succeeded && n == 1 && late == nil && told == nil:
			succeeded++
		case now.State == store.Failed && n == 0 && errors.Is(late, guard.ErrSealed) && told != nil:
			failed++
		default:
			t.Errorf("round %d: %v with %d effects; the late commit: %v; a retry: %v", round, now.State, n, late, told)
		}
	}
	t.Logf("%d succeeded, %d failed", succeeded, failed)
	if succeeded == 0 || failed == 0 {
		t.Error("the rounds do not show both ends")
	}
}

// TestSealAfterLostReplies: the COMMIT gets no reply; it was applied, or it was not, or it
// is being applied. The caller receives the truth, and a retry completes the key.
func TestSealAfterLostReplies(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) { t.Parallel(); loseReplies(t, onPostgres(t)) })
	t.Run("postgres database/sql", func(t *testing.T) { t.Parallel(); loseReplies(t, onPostgresSQL(t)) })
	t.Run("mariadb", func(t *testing.T) { t.Parallel(); loseReplies(t, onMariaDB(t)) })
}
