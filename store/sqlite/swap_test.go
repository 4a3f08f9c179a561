package sqlite_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// A transaction of another database is rejected, not written to.
func TestSwapTxOfAnotherDatabase(t *testing.T) {
	mine, theirs := open(t), open(t)
	tx := begin(t, theirs)
	c := create("key", store.Pending, 1)
	if answers, err := sqlite.New(mine, sqlite.Options{}).SwapTx(t.Context(), tx, []store.Change{c}); err == nil {
		t.Errorf("SwapTx = %+v, want an error", answers)
	}
	if answers, err := sqlite.New(mine, sqlite.Options{}).SwapTx(t.Context(), nil, []store.Change{c}); err == nil {
		t.Errorf("SwapTx without a transaction = %+v, want an error", answers)
	}
}

// A caller's transaction that has read first cannot write after another one has
// written. It is not Busy, because a retry does not help.
func TestSwapTxAfterALostSnapshot(t *testing.T) {
	db := plain(t)
	mustExec(t, db, `PRAGMA journal_mode = WAL`)
	s := sqlite.New(db, sqlite.Options{})
	tx := begin(t, db)
	var n int
	check.Require(t, tx.QueryRowContext(t.Context(), `SELECT count(*) FROM effects`).Scan(&n))
	mustApply(t, s, create("another", store.Pending, 1))
	answers, err := s.SwapTx(t.Context(), tx, []store.Change{create("mine", store.Pending, 1)})
	check.Fails(t, err, "SwapTx on an old snapshot = %+v", answers)
}

// If another transaction has the lock, the caller's transaction gets Busy.
func TestSwapTxBusy(t *testing.T) {
	db := plain(t)
	s := sqlite.New(db, sqlite.Options{})
	tx := begin(t, db)
	other := connect(t, db)
	mustExec(t, other, `BEGIN IMMEDIATE`)
	c := create("key", store.Pending, 1)
	if answers, err := s.SwapTx(t.Context(), tx, []store.Change{c}); err != nil || !answers[0].Busy {
		t.Errorf("SwapTx beside a writer = %+v, %v, want Busy", answers, err)
	}
	mustExec(t, other, `ROLLBACK`)
	if answers, err := s.SwapTx(t.Context(), tx, []store.Change{c}); err != nil || !answers[0].Applied(c) {
		t.Errorf("repeated SwapTx = %+v, %v, want applied", answers, err)
	}
}

// Every statement that makes a change stores the same times, for every way to read the clock,
// and the same optional fields of a first claim.
func TestBatchesAndSingleChangesAreAlike(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 50, 150} {
		s := sqlite.New(open(t), sqlite.Options{})
		changes := make([]store.Change, n)
		ids := make([]store.ID, n)
		for i := range changes {
			changes[i] = create(fmt.Sprint(i), store.InProgress, uint64(i+1))
			to := &changes[i].To
			to.Due, ids[i] = time.Hour, to.ID
			switch i % 10 {
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
		claims := slices.Clone(changes)
		wantApplied(t, s, changes, true)
		for i, r := range records(t, s, ids) {
			if c := claims[i].To; r.Token != c.Token || r.Tainted != c.Tainted || r.Priority != c.Priority || string(r.Input) != string(c.Input) {
				t.Errorf("claim %d of %d is %+v, want %+v", i, n, r, c)
			}
			if r.Due > time.Hour || r.Due < 50*time.Minute || r.Age < 0 || r.Since < 0 || r.Age > time.Minute || r.Since > time.Minute {
				t.Errorf("of %d claims one is %+v", n, r)
			}
		}
		for i := range changes {
			changes[i] = move(changes[i], store.InProgress)
			changes[i].To.Owner += 1000
			changes[i].IfDue = true
		}
		wantApplied(t, s, changes, false) // an hour is left
		for i := range changes {
			changes[i].IfDue = false
			changes[i].To.Due = -time.Hour
		}
		wantApplied(t, s, changes, true)
		for i := range changes {
			changes[i] = move(changes[i], store.Succeeded)
			changes[i].IfDue = i%2 == 0 // the lease is over
			changes[i].To.Due, changes[i].To.Expire, changes[i].To.Input = 0, 2*time.Hour, nil
			changes[i].To.Outcome = fmt.Append(nil, i)
		}
		wantApplied(t, s, changes, true)
		for i, r := range records(t, s, ids) {
			if r.Due != 0 || r.Expire > 2*time.Hour || r.Expire < time.Hour || string(r.Outcome) != fmt.Sprint(i) || r.Since < 0 {
				t.Errorf("of %d ends one is %+v", n, r)
			}
			if c := claims[i].To; r.Tainted != c.Tainted || string(r.Input) != string(c.Input) {
				t.Errorf("end %d of %d is %+v, want the taint and the input of its claim", i, n, r)
			}
		}
	}
}

// wantApplied makes the changes, and requires that all of them are applied, or none.
func wantApplied(t *testing.T, s *sqlite.Store, changes []store.Change, want bool) {
	t.Helper()
	answers := check.Must(s.Swap(t.Context(), changes))(t)
	for i, a := range answers {
		if a.Applied(changes[i]) != want {
			t.Fatalf("change %d of %d: %+v, applied: %v, want %v", i, len(changes), a, !want, want)
		}
	}
}

func records(t *testing.T, s *sqlite.Store, ids []store.ID) []store.Record {
	t.Helper()
	answers := check.Must(s.Get(t.Context(), ids))(t)
	all := make([]store.Record, len(answers))
	for i, a := range answers {
		if all[i] = *a.Record; a.Record.ID != ids[i] {
			t.Fatalf("answer %d is of another record", i)
		}
	}
	return all
}

// Purge checks the state, too, also for rows that were written by hand.
func TestPurgeKeepsUnfinishedRecords(t *testing.T) {
	db := open(t)
	s := sqlite.New(db, sqlite.Options{})
	for _, state := range store.States() {
		mustApply(t, s, create(state.String(), state, 1))
	}
	mustExec(t, db, `UPDATE semel_records SET expires = 1`)
	check.Result(s.Purge(t.Context(), 10))(t, 3, "Purge")
	for _, state := range []store.State{store.InProgress, store.InDoubt} {
		if got := current(t, s, create(state.String(), state, 1)); got.State != state {
			t.Errorf("%v was purged", state)
		}
	}
}

// An Expire that has just come does not read as never.
func TestExpireNow(t *testing.T) {
	db := open(t)
	s := sqlite.New(db, sqlite.Options{})
	tx := begin(t, db)
	for i := range 50 {
		c := create(fmt.Sprint(i), store.Succeeded, 1)
		c.To.Expire = 1
		other := create(fmt.Sprint(i), store.Succeeded, 2)
		for _, c := range []store.Change{c, other} {
			answers := check.Must(s.SwapTx(t.Context(), tx, []store.Change{c}))(t)
			if r := answers[0].Record; r != nil && r.Expire >= 0 {
				t.Fatalf("Expire reads %v, want less than zero", r.Expire)
			}
		}
	}
}
