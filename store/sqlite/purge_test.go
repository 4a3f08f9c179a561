package sqlite_test

import (
	"fmt"
	"testing"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// Purge checks the state, too, also for rows that were written by hand.
func TestPurgeKeepsUnfinishedRecords(t *testing.T) {
	db := open(t)
	s := sqlite.New(db, sqlite.Options{})
	for _, state := range store.States() {
		mustApply(t, s, create(state.String(), state, 1))
	}
	mustExec(t, db, `UPDATE semel_records SET expires = 1`)
	if n, err := s.Purge(t.Context(), 10); n != 3 || err != nil {
		t.Errorf("Purge = %d, %v, want 3", n, err)
	}
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
			answers, err := s.SwapTx(t.Context(), tx, []store.Change{c})
			if err != nil {
				t.Fatal(err)
			}
			if r := answers[0].Record; r != nil && r.Expire >= 0 {
				t.Fatalf("Expire reads %v, want less than zero", r.Expire)
			}
		}
	}
}
