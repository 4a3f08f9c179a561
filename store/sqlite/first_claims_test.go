package sqlite_test

import (
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
