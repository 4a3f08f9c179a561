package failures_test

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
)

// TestDeadlockedHandlersBothSucceed: the database aborts one of two handlers that wait for
// each other. The handler runs again, and both callers get their success.
func TestDeadlockedHandlersBothSucceed(t *testing.T) {
	t.Parallel()
	onWires(t, deadlockedHandlers[pgx.Tx], deadlockedHandlers[*sql.Tx])
}

func deadlockedHandlers[Tx any](t *testing.T, w *wire[Tx]) {
	t.Helper()
	for _, text := range []string{`CREATE TABLE accounts (name CHAR(1) PRIMARY KEY, n INT NOT NULL)`, `INSERT INTO accounts VALUES ('a', 0), ('b', 0)`} {
		check.Must(w.direct.ExecContext(t.Context(), text))(t)
	}
	for _, by := range handlerModes() {
		var met, both sync.WaitGroup // both have locked their first row before one locks its second
		met.Add(2)
		for _, order := range []string{"ab", "ba"} {
			arrive := sync.OnceFunc(met.Done)
			both.Go(func() {
				defer arrive() // also if this one has failed before its first row
				_, _, err := w.inTx(t.Context(), by, order, func(ctx context.Context, tx Tx) error {
					for name := range strings.SplitSeq(order, "") {
						if err := w.exec(ctx, tx, `UPDATE accounts SET n = n + 1 WHERE name = '`+name+`'`); err != nil {
							return err
						}
						arrive()
						met.Wait()
					}
					return nil
				})
				check.NoError(t, err, "%s %s", by, order)
			})
		}
		both.Wait()
	}
	if w.seen.count(event.Retried) == 0 {
		t.Error("no transaction was run again: there was no deadlock")
	}
	var sum int
	check.Require(t, w.direct.QueryRowContext(t.Context(), `SELECT sum(n) FROM accounts`).Scan(&sum))
	check.Equal(t, sum, 8, "the sum of the accounts")
}
