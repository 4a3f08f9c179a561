package postgres_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// An error of the server is the answer, and the session goes on. Where the pool's
// OnPgError says of an error that the connection is not to be used again, it is not.
func TestSessionsAfterAnError(t *testing.T) {
	t.Parallel()
	url := database(t)
	admin := connect(t, url)
	mustExec(t, admin, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$`)
	mustExec(t, admin, `CREATE TRIGGER refuses BEFORE INSERT ON semel_records FOR EACH ROW WHEN (NEW.key = 'refused') EXECUTE FUNCTION refuse()`)
	for name, row := range map[string]struct {
		on   pgconn.PgErrorHandler
		want int
	}{
		"usual": {func(_ *pgconn.PgConn, err *pgconn.PgError) bool { return err.Severity != "FATAL" }, 1},
		"none":  {nil, 1},
		"never": {func(*pgconn.PgConn, *pgconn.PgError) bool { return false }, 0},
	} {
		s := newStore(t, connect(t, url, func(c *pgxpool.Config) { c.ConnConfig.OnPgError = row.on }), postgres.Options{MaxSessions: 1})
		if err := s.OpenSessions(t.Context()); err != nil {
			t.Fatal(err)
		}
		changes := append(batch(name, 8), create("refused", store.InProgress, 1))
		answers, err := s.Swap(t.Context(), changes)
		// The server may not have ended the transaction of a closed connection yet.
		for row.want == 0 && err == nil && slices.ContainsFunc(answers, isBusy) {
			answers, err = s.Swap(t.Context(), changes)
		}
		if err != nil || answers[8].Err == nil || !answers[0].Applied(changes[0]) {
			t.Errorf("%s: Swap = %+v, %v, want the last one refused", name, answers, err)
		}
		if _, open := s.Sessions(); open < row.want {
			t.Errorf("%s: %d sessions are open after an error, want %d", name, open, row.want)
		}
		realtest.Poll(t, "the session to be closed", func() bool {
			_, open := s.Sessions()
			return open <= row.want
		})
	}
}

func isBusy(r store.SwapResult) bool { return r.Busy }
