package postgres_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// What a connection still has to say of something else is not taken for the answer: a
// batch that has not committed would be told that it has.
func TestAnswerToSomethingElse(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t), func(c *pgxpool.Config) { c.MaxConns = 2 })
	s := newStore(t, pool, postgres.Options{})
	stood := create("stood", store.Succeeded, 1)
	mustForce(t, s, stood)
	again := stood
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
		if got := one[int](t, pool, `SELECT 1`); got != 1 {
			t.Errorf("%s: a query afterwards answers %d", name, got)
		}
	}
	if token := stands(t, s, stood); token != stood.To.Token {
		t.Errorf("%+v stands, want %+v", token, stood.To.Token)
	}
}

// leaveAnAnswer leaves an unread reply on a connection.
func leaveAnAnswer(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Conn().PgConn().Conn().Write([]byte{'S', 0, 0, 0, 4}); err != nil {
		t.Fatal(err)
	}
}
