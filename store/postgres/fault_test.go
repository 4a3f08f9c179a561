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

// rig is a database, and a store whose connections can be broken.
type rig struct {
	direct *pgxpool.Pool
	proxy  *realtest.Proxy
	store  *postgres.Store
}

func breaking(t *testing.T) rig {
	t.Helper()
	url := database(t)
	proxy := realtest.NewProxy(t, realtest.Postgres(t).Addr())
	return rig{connect(t, url), proxy, newStore(t, connect(t, proxy.URL(url)), postgres.Options{})}
}

// finish runs a transaction that has one effect of key and ends with last.
func finish(t *testing.T, s *postgres.Store, key string, last *store.Change) (store.Verdict, error) {
	t.Helper()
	return s.Atomic(t.Context(), last.To.ID, true, func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
		return last, effect(ctx, tx, key)
	})
}

// settled asks until no open transaction holds the record of c, whose change it
// is, and returns the token of the current record.
func settled(t *testing.T, s *postgres.Store, c store.Change) store.Token {
	t.Helper()
	for {
		answers := check.Must(s.Swap(t.Context(), []store.Change{c}))(t)
		if !answers[0].Busy {
			return answers[0].Token
		}
	}
}

// trigger runs statements at the commit of a transaction with an effect.
func trigger(t *testing.T, pool *pgxpool.Pool, body string) {
	t.Helper()
	mustExec(t, pool, `CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN `+body+`; RETURN NULL; END $$`)
	mustExec(t, pool, `CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON effects
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION at_commit()`)
}

// A COMMIT that was applied and whose reply is lost is never reported as NotCommitted.
func TestCommitWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	r := breaking(t)
	last := create("key", store.Succeeded, 1)
	fault := r.proxy.EatReply(realtest.Commit())
	verdict, err := finish(t, r.store, "key", &last)
	if verdict != store.Unknown || err == nil {
		t.Errorf("Atomic = %v, %v, want Unknown", verdict, err)
	}
	fault.Wait(t)
	if n := effects(t, r.direct, "key"); n != 1 || current(t, r.store, last) != last.To.Token {
		t.Errorf("%d effects and %+v, want it committed", n, current(t, r.store, last))
	}
}

// A COMMIT that never reached the server has an unknown outcome, like any other. A
// later change of another caller proves which it was.
func TestCommitThatIsNotSent(t *testing.T) {
	t.Parallel()
	r := breaking(t)
	last, proof := create("key", store.Succeeded, 1), create("key", store.Pending, 2)
	r.proxy.CutBefore(realtest.Commit())
	verdict, err := finish(t, r.store, "key", &last)
	if verdict != store.Unknown || err == nil {
		t.Errorf("Atomic = %v, %v, want Unknown", verdict, err)
	}
	if got := settled(t, r.store, proof); got != proof.To.Token {
		t.Errorf("the current record is %+v, want the certificate", got)
	}
	check.Equal(t, effects(t, r.direct, "key"), 0, "effects")
}

// The connection breaks while COMMIT is running: its effect is not visible, and the
// record is Busy for other callers until it has ended.
func TestCommitThatGoesOn(t *testing.T) {
	t.Parallel()
	r := breaking(t)
	trigger(t, r.direct, `PERFORM pg_advisory_xact_lock(1)`)
	gate, err := r.direct.Begin(t.Context())
	check.Require(t, err)
	mustExec(t, gate, `SELECT pg_advisory_xact_lock(1)`)
	last, proof := create("key", store.Succeeded, 1), create("key", store.Pending, 2)
	fault := r.proxy.CutAfter(realtest.Commit())
	verdict, err := finish(t, r.store, "key", &last)
	if verdict != store.Unknown || err == nil {
		t.Errorf("Atomic = %v, %v, want Unknown", verdict, err)
	}
	waitFor(t, r.direct, "advisory") // until COMMIT is at work
	if n, token := effects(t, r.direct, "key"), current(t, r.store, last); n != 0 || token != (store.Token{}) {
		t.Errorf("while COMMIT is at work: %d effects and %+v, want nothing to be seen", n, token)
	}
	answers, err := r.store.Swap(t.Context(), []store.Change{proof})
	if err != nil || !answers[0].Busy {
		t.Errorf("Swap while COMMIT is at work = %+v, %v, want Busy", answers, err)
	}
	check.Require(t, gate.Rollback(t.Context()))
	fault.Wait(t)
	if got := settled(t, r.store, proof); got != last.To.Token {
		t.Errorf("the current record is %+v, want what was committed", got)
	}
	check.Equal(t, effects(t, r.direct, "key"), 1, "effects")
}

// When the bound passes, the verdict is Unknown.
func TestCommitThatHangs(t *testing.T) {
	t.Parallel()
	r := breaking(t)
	trigger(t, r.direct, `PERFORM pg_sleep(600)`)
	last, proof := create("key", store.Succeeded, 1), create("key", store.Pending, 2)
	r.store.SetCommitBound(time.Second)
	verdict, err := finish(t, r.store, "key", &last)
	check.ResultIs(verdict, err)(t, store.Unknown, context.DeadlineExceeded, "Atomic (want Unknown, and that the bound has passed)")
	// The driver asks the server to cancel what it does not wait for any more.
	if got := settled(t, r.store, proof); got != proof.To.Token {
		t.Errorf("the current record is %+v, want the certificate", got)
	}
	check.Equal(t, effects(t, r.direct, "key"), 0, "effects")
}

// If the server refuses a COMMIT, the verdict is certain, unless the error ends the session.
func TestCommitThatIsRefused(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, body, code string
		want             store.Verdict
		conflict         bool
	}{
		{"raise", `RAISE 'no'`, "P0001", store.NotCommitted, false},
		{"constraint", `INSERT INTO effects VALUES (NULL)`, "23502", store.NotCommitted, false},
		{"unique, but not ours", `INSERT INTO others VALUES (1)`, "23505", store.NotCommitted, false},
		{"division, but not ours", `PERFORM 1 / (SELECT count(*) FROM pg_class WHERE false)`, "22012", store.NotCommitted, false},
		{"serialization", `RAISE SQLSTATE '40001'`, "40001", store.NotCommitted, true},
		{"deadlock", `RAISE SQLSTATE '40P01'`, "40P01", store.NotCommitted, true},
		{"cancel", `PERFORM pg_cancel_backend(pg_backend_pid()), pg_sleep(600)`, "57014", store.NotCommitted, false},
		{"unknown by its own word", `RAISE SQLSTATE '40003'`, "40003", store.Unknown, false},
		{"input and output", `RAISE SQLSTATE '58030'`, "58030", store.Unknown, false},
		{"terminate", `PERFORM pg_terminate_backend(pg_backend_pid()), pg_sleep(600)`, "57P01", store.Unknown, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			pool := connect(t, database(t))
			s := newStore(t, pool, postgres.Options{})
			mustExec(t, pool, `CREATE TABLE others (id int PRIMARY KEY)`)
			mustExec(t, pool, `INSERT INTO others VALUES (1)`)
			trigger(t, pool, row.body)
			for _, last := range []store.Change{create("new", store.Succeeded, 1), existing(t, s)} {
				before := current(t, s, last)
				verdict, err := finish(t, s, "key", &last)
				if verdict != row.want || postgres.CodeOf(err) != row.code || errors.Is(err, store.ErrConflict) != row.conflict || errors.Is(err, store.ErrSuperseded) {
					t.Errorf("Atomic = %v, %v, want %v and %s", verdict, err, row.want, row.code)
				}
				if n, token := effects(t, pool, "key"), current(t, s, last); n != 0 || token != before {
					t.Errorf("%d effects and %+v, want the earlier record", n, token)
				}
			}
		})
	}
}

// An error of a trigger on the records is not taken for a superseded change.
func TestLastChangeThatATriggerRefuses(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	old := existing(t, s)
	mustExec(t, pool, `CREATE TABLE others (id int PRIMARY KEY);
INSERT INTO others VALUES (1);
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO others VALUES (1); RETURN NEW; END $$;
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON semel_records FOR EACH ROW EXECUTE FUNCTION refuse()`, pgx.QueryExecModeSimpleProtocol)
	for _, last := range []store.Change{create("new", store.Succeeded, 1), old} {
		verdict, err := finish(t, s, "key", &last)
		if verdict != store.NotCommitted || postgres.CodeOf(err) != "23505" || errors.Is(err, store.ErrSuperseded) {
			t.Errorf("Atomic = %v, %v, want NotCommitted and the trigger's error", verdict, err)
		}
	}
	check.Equal(t, effects(t, pool, "key"), 0, "effects")
}

// existing returns the change that created an existing record.
func existing(t *testing.T, s *postgres.Store) store.Change {
	t.Helper()
	c := create("old", store.InProgress, 1)
	mustForce(t, s, c)
	return move(c, store.Succeeded)
}
