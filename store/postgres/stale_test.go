package postgres_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// An unread reply of an earlier statement is never taken for the reply to a batch. A batch that
// was not committed would otherwise be reported as committed.
func TestAnswerToSomethingElse(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t), func(c *pgxpool.Config) { c.MaxConns = 2 })
	s := newStore(t, pool, postgres.Options{})
	existing := create("stored", store.Succeeded, 1)
	mustForce(t, s, existing)
	again := existing
	again.To.Owner = 2
	for name, ask := range map[string]func() (store.Verdict, error){
		"AtomicBatch": func() (store.Verdict, error) {
			_, verdict, err := s.AtomicBatch(t.Context(), again, true, statements(anEffect))
			return verdict, err
		},
		"Atomic": func() (store.Verdict, error) { return finish(t, s, "key", &again) },
	} {
		for i := range 2 { // from the second one on they go past the driver
			warm := create(fmt.Sprint(name, i), store.Succeeded, 1)
			if _, verdict, err := s.AtomicBatch(t.Context(), warm, true, statements(anEffect)); verdict != store.Committed {
				t.Fatalf("AtomicBatch = %v, %v, want Committed", verdict, err)
			}
			last := create(fmt.Sprint(name, " atomic ", i), store.Succeeded, 1)
			if verdict, err := finish(t, s, "key", &last); verdict != store.Committed {
				t.Fatalf("Atomic = %v, %v, want Committed", verdict, err)
			}
		}
		leaveAnAnswer(t, pool)
		if verdict, err := ask(); verdict == store.Committed || err == nil {
			t.Errorf("%s behind another answer = %v, %v, want an error", name, verdict, err)
		}
		check.Equal(t, one[int](t, pool, `SELECT 1`), 1, "%s: a query afterwards answers", name)
	}
	if token := current(t, s, existing); token != existing.To.Token {
		t.Errorf("the current record is %+v, want %+v", token, existing.To.Token)
	}
}

// leaveAnAnswer leaves an unread reply on a connection.
func leaveAnAnswer(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	conn := check.Must(pool.Acquire(t.Context()))(t)
	defer conn.Release()
	check.Must(conn.Conn().PgConn().Conn().Write([]byte{'S', 0, 0, 0, 4}))(t)
}
