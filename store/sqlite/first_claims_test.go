package sqlite_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// Concurrent first claims are made by few statements. Each has its own answer:
// claims that find another record, repeated claims, claims that SQLite rejects, and
// their neighbours.
func TestFirstClaimsInOneStatement(t *testing.T) {
	t.Parallel()
	for _, n := range []int{8, 11, 16, 23, 64} {
		for _, refused := range []int{-1, 0, 3, n - 1} {
			db := open(t)
			s := sqlite.New(db, sqlite.Options{})
			changes := make([]store.Change, n)
			for i := range changes {
				changes[i] = create(fmt.Sprint("k", i), store.InProgress, uint64(i+1))
				changes[i].To.Due = time.Hour
			}
			again, other := changes[1], changes[2]
			other.To.State, other.To.Owner, other.To.Outcome = store.Succeeded, 99, []byte("done")
			wantApplied(t, s, []store.Change{again, other}, true)
			if refused >= 0 {
				mustExec(t, db, fmt.Sprintf(`CREATE TRIGGER refuse BEFORE INSERT ON semel_records
WHEN new.key = CAST('k%d' AS BLOB) BEGIN SELECT RAISE(ABORT, 'refused'); END`, refused))
			}
			answers := check.Must(s.Swap(t.Context(), changes))(t)
			tx := begin(t, db)
			repeated := check.Must(s.SwapTx(t.Context(), tx, changes))(t)
			for _, answers := range [][]store.SwapResult{answers, repeated} {
				for i, a := range answers {
					checkClaim(t, fmt.Sprintf("claim %d of %d, with %d refused", i, n, refused), a, changes[i], i == 2, i == refused)
				}
			}
			check.Require(t, tx.Rollback())
			for i, c := range changes {
				want := c.To.Token
				switch i {
				case 2:
					want = other.To.Token
				case refused:
					want = store.Token{}
				}
				check.Equal(t, current(t, s, c), want, "%d of %d, with %d refused: is current", i, n, refused)
			}
		}
	}
}

// A claim that a trigger rejects after its row was written is undone, with the
// writes of the trigger.
func TestClaimIsRejectedAfterItsRow(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := sqlite.New(db, sqlite.Options{})
	mustExec(t, db, `CREATE TABLE seen (key BLOB UNIQUE);
INSERT INTO seen VALUES (CAST('k7' AS BLOB));
CREATE TRIGGER see AFTER INSERT ON semel_records BEGIN INSERT INTO seen VALUES (new.key); END`)
	const n = 20
	changes := make([]store.Change, n)
	for i := range changes {
		changes[i] = create(fmt.Sprint("k", i), store.InProgress, uint64(i+1))
		changes[i].To.Due = time.Hour
	}
	answers := check.Must(s.Swap(t.Context(), changes))(t)
	for i, a := range answers {
		checkClaim(t, fmt.Sprintf("claim %d of %d", i, n), a, changes[i], false, i == 7)
		check.Equal(t, current(t, s, changes[i]) == changes[i].To.Token, (i != 7), "claim %d of %d: made", i, n)
	}
	var seen int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM seen`).Scan(&seen); err != nil || seen != n {
		t.Errorf("the trigger has seen %d keys, want %d (%v)", seen, n, err)
	}
}

func checkClaim(t *testing.T, what string, a store.SwapResult, c store.Change, other, refused bool) {
	t.Helper()
	switch {
	case refused:
		check.Fails(t, a.Err, "%s: %+v, want it refused", what, a)
	case a.Err != nil, a.Busy:
		t.Errorf("%s: %+v, want an answer", what, a)
	case other:
		if a.Applied(c) || a.Record == nil || string(a.Record.Outcome) != "done" {
			t.Errorf("%s: %+v, want the record that is in the way", what, a)
		}
	case !a.Applied(c), a.Record != nil:
		t.Errorf("%s: %+v, want it applied", what, a)
	}
}

// The optional fields of a first claim are stored by every statement that makes it,
// for any number of claims.
func TestClaimsWithMoreFields(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 20} {
		s := sqlite.New(open(t), sqlite.Options{})
		changes := make([]store.Change, n)
		for i := range changes {
			to := &changes[i].To
			*to = create(fmt.Sprint(i), store.InProgress, 7).To
			switch i % 5 {
			case 0:
				to.Tainted, to.Attempt = true, 2
			case 1:
				to.Priority = 3
			case 2:
				to.Input = []byte("input")
			case 3:
				to.Attempt = 5
			}
		}
		wantApplied(t, s, changes, true)
		for i, c := range changes {
			answers := check.Must(s.Get(context.Background(), []store.ID{c.To.ID}))(t)
			r := answers[0].Record
			if r.Token != c.To.Token || r.Tainted != c.To.Tainted || r.Priority != c.To.Priority || string(r.Input) != string(c.To.Input) {
				t.Errorf("claim %d of %d is %+v, want %+v", i, n, r, c.To)
			}
		}
		for i := range changes {
			changes[i] = move(changes[i], store.Failed)
			changes[i].To.Input, changes[i].To.Outcome = nil, []byte("no")
		}
		wantApplied(t, s, changes, true)
		for i, c := range changes {
			answers := check.Must(s.Get(context.Background(), []store.ID{c.To.ID}))(t)
			if r := answers[0].Record; r.Tainted != c.To.Tainted || string(r.Outcome) != "no" || (i%5 == 2) != (string(r.Input) == "input") {
				t.Errorf("end %d of %d is %+v, want %+v", i, n, r, c.To)
			}
		}
	}
}
