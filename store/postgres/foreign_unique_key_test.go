package postgres_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// foreignKeys are unique keys that a record can meet besides its own.
func foreignKeys() map[string][]string {
	const into = `CREATE FUNCTION copy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO %s VALUES (1); RETURN NULL; END $$`
	const copies = `CREATE TRIGGER copies AFTER INSERT ON semel_records FOR EACH ROW EXECUTE FUNCTION copy()`
	return map[string][]string{
		"an index of the user's": {`CREATE UNIQUE INDEX ON semel_records (priority)`},
		"a table of that name in another schema": {
			`CREATE SCHEMA other`, `CREATE TABLE other.semel_records (id int PRIMARY KEY)`, fmt.Sprintf(into, `other.semel_records`), copies,
		},
		"a table of nearly that name": {`CREATE TABLE semel_records_seen (n int PRIMARY KEY)`, fmt.Sprintf(into, `semel_records_seen`), copies},
	}
}

// A record that cannot be written because of a unique key of the application is
// refused with the error of the server, which is neither a conflict nor an existing record.
func TestForeignUniqueKeysAreNoRecords(t *testing.T) {
	t.Parallel()
	for name, made := range foreignKeys() {
		divides := []bool{false, true}
		if len(made) == 1 { // a unique key of a divided table has the ID in it
			divides = divides[:1]
		}
		for _, divide := range divides {
			t.Run(fmt.Sprint(name, " ", divide), func(t *testing.T) {
				t.Parallel()
				url := database(t)
				others := connect(t, url)
				if divide {
					divided(t, others, postgres.PartitionOptions{})
				}
				s := newStore(t, connect(t, url, atMost(2)), postgres.Options{})
				for _, text := range made {
					mustExec(t, others, text)
				}
				first := create("first", store.Succeeded, 1)
				if verdict, err := finish(t, s, "first", &first); verdict != store.Committed {
					t.Fatalf("Atomic = %v, %v, want Committed", verdict, err)
				}
				for i := range 3 { // by the driver, and past it
					last := create(fmt.Sprint(i), store.Succeeded, 2)
					verdict, err := finish(t, s, "key", &last)
					if verdict != store.NotCommitted || errors.Is(err, store.ErrSuperseded) || errors.Is(err, store.ErrConflict) || postgres.CodeOf(err) != "23505" {
						t.Errorf("Atomic = %v, %v, want NotCommitted and the server's error", verdict, err)
					}
					answer, verdict, err := s.AtomicBatch(t.Context(), last, true, statements(anEffect))
					if verdict != store.NotCommitted || err != nil || postgres.CodeOf(answer.Err) != "23505" {
						t.Errorf("AtomicBatch = %+v, %v, %v, want it refused with the server's error", answer, verdict, err)
					}
					if answers, err := s.Swap(t.Context(), []store.Change{last}); err != nil || postgres.CodeOf(answers[0].Err) != "23505" {
						t.Errorf("Swap = %+v, %v, want it refused with the server's error", answers, err)
					}
					// Its own key is known all the same.
					again := first
					again.To.Owner = 9
					check.ResultIs(finish(t, s, "key", &again))(t, store.NotCommitted, store.ErrSuperseded, "Atomic of a change that was applied (want ErrSuperseded)")
				}
				check.Equal(t, effects(t, others, "key"), 0, "effects")
			})
		}
	}
}
