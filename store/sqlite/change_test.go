package sqlite_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// The times are the same for every statement that makes a change, and every way to
// read the clock.
func TestTimesOfBatchesAndSingleChanges(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 50} {
		s := sqlite.New(open(t), sqlite.Options{})
		changes := make([]store.Change, n)
		ids := make([]store.ID, n)
		for i := range changes {
			changes[i] = create(fmt.Sprint(i), store.InProgress, uint64(i+1))
			changes[i].To.Due = time.Hour
			ids[i] = changes[i].To.ID
		}
		wantApplied(t, s, changes, true)
		for _, r := range records(t, s, ids) {
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
			changes[i].To.Due, changes[i].To.Expire = 0, 2*time.Hour
			changes[i].To.Outcome = fmt.Append(nil, i)
		}
		wantApplied(t, s, changes, true)
		for i, r := range records(t, s, ids) {
			if r.Due != 0 || r.Expire > 2*time.Hour || r.Expire < time.Hour || string(r.Outcome) != fmt.Sprint(i) || r.Since < 0 {
				t.Errorf("of %d ends one is %+v", n, r)
			}
		}
	}
}

// wantApplied makes the changes, and requires that all of them are applied, or none.
func wantApplied(t *testing.T, s *sqlite.Store, changes []store.Change, want bool) {
	t.Helper()
	answers, err := s.Swap(t.Context(), changes)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		if a.Applied(changes[i]) != want {
			t.Fatalf("change %d of %d: %+v, applied: %v, want %v", i, len(changes), a, !want, want)
		}
	}
}

func records(t *testing.T, s *sqlite.Store, ids []store.ID) []store.Record {
	t.Helper()
	answers, err := s.Get(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]store.Record, len(answers))
	for i, a := range answers {
		if all[i] = *a.Record; a.Record.ID != ids[i] {
			t.Fatalf("answer %d is of another record", i)
		}
	}
	return all
}
