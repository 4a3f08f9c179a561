package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// trigger runs statements at the commit of a transaction with an effect.
func trigger(t *testing.T, pool *pgxpool.Pool, body string) {
	t.Helper()
	mustExec(t, pool, `CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN `+body+`; RETURN NULL; END $$`)
	mustExec(t, pool, `CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON effects
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION at_commit()`)
}

// calling is a batch whose COMMIT waits for its callbacks.
func calling() *pgx.Batch {
	b := &pgx.Batch{}
	b.Queue(anEffect).Exec(func(pgconn.CommandTag) error { return nil })
	return b
}

// commitFunc runs one effect of "key" and the change in one transaction.
type commitFunc = func(t *testing.T, s *postgres.Store, last store.Change) (store.Verdict, error)

func byAtomic(t *testing.T, s *postgres.Store, last store.Change) (store.Verdict, error) {
	t.Helper()
	return finish(t, s, "key", &last)
}

// byFailure has the effect undone, and its failure stored.
func byFailure(t *testing.T, s *postgres.Store, last store.Change) (store.Verdict, error) {
	t.Helper()
	last.To.State = store.Failed
	return inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
		return &last, errors.Join(errHandler, effect(ctx, tx, "key"))
	})
}

func byBatch(b func() *pgx.Batch) commitFunc {
	return func(t *testing.T, s *postgres.Store, last store.Change) (store.Verdict, error) {
		t.Helper()
		_, verdict, err := s.AtomicBatch(t.Context(), last, true, b())
		return verdict, err
	}
}

func oneEffect() *pgx.Batch { return statements(anEffect) }

// If the connection is lost with the COMMIT, the verdict is Unknown; a later change of
// another caller proves how the transaction ended. If it is lost before, all is rolled back.
func TestCommitWhoseReplyIsLost(t *testing.T) {
	t.Parallel()
	lost, unsent := (*realtest.Proxy).EatReply, (*realtest.Proxy).CutBefore
	for name, row := range map[string]struct {
		commit  commitFunc
		arm     func(*realtest.Proxy, realtest.Match) *realtest.Fault
		at      string
		want    store.Verdict
		applied bool
	}{
		"Atomic, reply lost":                         {byAtomic, lost, "COMMIT", store.Unknown, true},
		"Atomic, not sent":                           {byAtomic, unsent, "COMMIT", store.Unknown, false},
		"AtomicBatch, reply lost":                    {byBatch(oneEffect), lost, "INTO effects", store.Unknown, true},
		"AtomicBatch, not sent":                      {byBatch(oneEffect), unsent, "INTO effects", store.Unknown, false},
		"AtomicBatch with a callback, reply lost":    {byBatch(calling), lost, "COMMIT", store.Unknown, true},
		"AtomicBatch with a callback, not sent":      {byBatch(calling), unsent, "COMMIT", store.Unknown, false},
		"AtomicBatch with a callback, before COMMIT": {byBatch(calling), lost, "INTO effects", store.NotCommitted, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := breaking(t)
			check.Result(row.commit(t, r.store, create("first", store.Succeeded, 1)))(t, store.Committed, "a transaction before")
			mustExec(t, r.direct, `TRUNCATE effects`)
			last, proof := create("key", store.Succeeded, 1), create("key", store.Pending, 2)
			fault := row.arm(r.proxy, realtest.SQL(row.at))
			verdict, err := row.commit(t, r.store, last)
			fault.Wait(t)
			if verdict != row.want || err == nil || errors.Is(err, store.ErrInterrupted) != (row.want == store.NotCommitted) {
				t.Errorf("the verdict is %v, %v, want %v", verdict, err, row.want)
			}
			want, n := proof.To.Token, 0
			if row.applied {
				want, n = last.To.Token, 1
			}
			check.Equal(t, settled(t, r.store, proof), want, "the current record")
			check.Equal(t, effects(t, r.direct, "key"), n, "effects")
		})
	}
}

// The server replies to COMMIT after it has committed. That reply is proof, also if
// the connection is lost before the server is ready again.
func TestReplyToCommitIsEnough(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		commit  commitFunc
		effects int
	}{
		"a transaction":          {byAtomic, 1},
		"a failure that is kept": {byFailure, 0},
		"a batch":                {byBatch(oneEffect), 1},
		"a batch with callbacks": {byBatch(calling), 1},
	} {
		for _, m := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
			t.Run(name+" "+m.String(), func(t *testing.T) {
				t.Parallel()
				r := breaking(t, mode(m))
				last := create("key", store.Succeeded, 1)
				fault := r.proxy.EatReady(realtest.SQL("COMMIT"))
				check.Result(row.commit(t, r.store, last))(t, store.Committed, "the commit")
				fault.Wait(t)
				if row.effects == 0 {
					last.To.State = store.Failed
				}
				check.Equal(t, current(t, r.store, last), last.To.Token, "the current record")
				check.Equal(t, effects(t, r.direct, "key"), row.effects, "effects")
			})
		}
	}
}

// The connection breaks while COMMIT is running: its effect is not visible, and the
// record is Busy for other callers until it has ended.
func TestCommitThatGoesOn(t *testing.T) {
	t.Parallel()
	r := breaking(t)
	trigger(t, r.direct, `PERFORM pg_advisory_xact_lock(1)`)
	gate := check.Must(r.direct.Begin(t.Context()))(t)
	mustExec(t, gate, `SELECT pg_advisory_xact_lock(1)`)
	last, proof := create("key", store.Succeeded, 1), create("key", store.Pending, 2)
	fault := r.proxy.CutAfter(realtest.Commit())
	verdict, err := finish(t, r.store, "key", &last)
	if verdict != store.Unknown || err == nil {
		t.Errorf("Atomic = %v, %v, want Unknown", verdict, err)
	}
	untilLocked(t, r.direct, "advisory") // until COMMIT is at work
	check.Equal(t, effects(t, r.direct, "key"), 0, "effects while COMMIT is at work")
	check.Equal(t, current(t, r.store, last), store.Token{}, "the current record while COMMIT is at work")
	answers, err := r.store.Swap(t.Context(), []store.Change{proof})
	if err != nil || !answers[0].Busy {
		t.Errorf("Swap while COMMIT is at work = %+v, %v, want Busy", answers, err)
	}
	check.Require(t, gate.Rollback(t.Context()))
	fault.Wait(t)
	check.Equal(t, settled(t, r.store, proof), last.To.Token, "the current record")
	check.Equal(t, effects(t, r.direct, "key"), 1, "effects")
}

// When the bound of a COMMIT has passed, the verdict is Unknown. The server is asked to
// cancel the COMMIT, and the connection is not used again.
func TestCommitThatHangs(t *testing.T) {
	t.Parallel()
	for name, commit := range map[string]commitFunc{"Atomic": byAtomic, "AtomicBatch": byBatch(oneEffect)} {
		s, pool := open(t, postgres.Options{StatementTimeout: -1}, atMost(2))
		others := connect(t, pool.Config().ConnString())
		first := create("first", store.Succeeded, 1)
		check.Result(finish(t, s, "first", &first))(t, store.Committed, "%s: a transaction before", name)
		trigger(t, others, `PERFORM pg_sleep(600)`)
		last, proof := create("key", store.Succeeded, 1), create("key", store.Pending, 2)
		s.SetCommitBound(time.Second)
		verdict, err := commit(t, s, last)
		check.ResultIs(verdict, err)(t, store.Unknown, context.DeadlineExceeded, "%s (want Unknown, and that the bound has passed)", name)
		s.SetCommitBound(10 * time.Second)
		check.Equal(t, settled(t, s, proof), proof.To.Token, "%s: the current record", name)
		check.Equal(t, effects(t, others, "key"), 0, "%s: effects", name)
		before := pool.Stat().NewConnsCount()
		mustBeFree(t, s, create("other", store.Succeeded, 1))
		if after := pool.Stat().NewConnsCount(); before == 1 && after == 1 {
			t.Errorf("%s: the connection is used again", name)
		}
	}
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
			s, pool := open(t, postgres.Options{})
			mustExec(t, pool, `CREATE TABLE others (id int PRIMARY KEY)`)
			mustExec(t, pool, `INSERT INTO others VALUES (1)`)
			trigger(t, pool, row.body)
			for _, last := range []store.Change{create("new", store.Succeeded, 1), existing(t, s)} {
				before := current(t, s, last)
				verdict, err := finish(t, s, "key", &last)
				if verdict != row.want || postgres.CodeOf(err) != row.code || errors.Is(err, store.ErrConflict) != row.conflict || errors.Is(err, store.ErrSuperseded) {
					t.Errorf("Atomic = %v, %v, want %v and %s", verdict, err, row.want, row.code)
				}
				check.Equal(t, current(t, s, last), before, "the current record")
				check.Equal(t, effects(t, pool, "key"), 0, "effects")
			}
		})
	}
}

// An error of a trigger on the records is not taken for a superseded change.
func TestLastChangeThatATriggerRefuses(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{})
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

// existing creates a record and returns the change that finishes it.
func existing(t *testing.T, s *postgres.Store) store.Change {
	t.Helper()
	c := create("old", store.InProgress, 1)
	mustForce(t, s, c)
	return move(c, store.Succeeded)
}
