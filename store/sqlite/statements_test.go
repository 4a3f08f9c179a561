package sqlite_test

import (
	"testing"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// The first call of a store prepares its statements and reads the database for
// that. Like every later call it waits for a connection that excludes readers, and
// returns Busy in the end.
func TestFirstCallWaitsForALock(t *testing.T) {
	t.Parallel()
	db := plain(t) // without WAL, a writer excludes readers
	lock, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for _, text := range []string{`BEGIN EXCLUSIVE`, `INSERT INTO effects VALUES ('held')`} {
		if _, err := lock.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	s := sqlite.New(db, sqlite.Options{})
	c := create("k", store.Succeeded, 1)
	answers, err := s.Swap(t.Context(), []store.Change{c})
	if err != nil || !answers[0].Busy {
		t.Errorf("Swap = %+v, %v, want Busy: the database is locked", answers, err)
	}
	if _, err := lock.ExecContext(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	answers, err = s.Swap(t.Context(), []store.Change{c})
	if err != nil || !answers[0].Applied(c) {
		t.Errorf("Swap = %+v, %v, want it applied", answers, err)
	}
}
