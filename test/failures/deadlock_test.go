package failures_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
)

// TestDeadlockedHandlersBothAnswer: the database aborts one of two handlers that
// wait for each other. The handler runs again with its complete request, and its
// client does not notice.
func TestDeadlockedHandlersBothAnswer(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "postgres")
	for _, by := range handlerModes() {
		t.Run(string(by), func(t *testing.T) {
			t.Parallel()
			url := realtest.Postgres(t).Database(t)
			w := newFixture(t, inPostgres(t, url, url), "deadlock")
			check.Must(ledger.Pool(t, url).Exec(t.Context(), `
create table accounts (name text primary key, n int not null); insert into accounts values ('a', 0), ('b', 0)`))(t)
			var met sync.WaitGroup // both have locked their first row before one locks its second
			met.Add(2)
			arrive := map[string]*sync.Once{"ab": new(sync.Once), "ba": new(sync.Once)}
			base := serve(t, w.protect(t, w.engine, by, w.handler(w.engine, by,
				func(rw http.ResponseWriter, r *http.Request, _ func() error) error {
					body, err := io.ReadAll(r.Body)
					if err != nil || string(body) != `{"n":1}` {
						return fmt.Errorf("the request's body is %q: %w", body, err)
					}
					tx, _ := semel.TxOf(r.Context(), w.engine)
					order := r.Header.Get("X-User")
					if err := add(r.Context(), tx, order[:1]); err != nil {
						return err
					}
					arrive[order].Do(met.Done)
					met.Wait()
					if err := add(r.Context(), tx, order[1:]); err != nil {
						return err
					}
					rw.WriteHeader(http.StatusCreated)
					return nil
				})))
			var both sync.WaitGroup
			for user := range arrive {
				both.Go(func() {
					if a, err := send(t.Context(), testClient, base, user, "k"); err != nil || a.status != http.StatusCreated {
						t.Errorf("%s got %d %q, %v", user, a.status, a.body, err)
					}
				})
			}
			both.Wait()
			if w.seen.count(event.Retried) == 0 {
				t.Error("no transaction was run again: there was no deadlock")
			}
			var sum int
			if err := ledger.Pool(t, url).QueryRow(t.Context(), `select sum(n) from accounts`).Scan(&sum); err != nil || sum != 4 {
				t.Errorf("the accounts hold %d, %v, want 4", sum, err)
			}
		})
	}
}

func add(ctx context.Context, tx pgx.Tx, name string) error {
	_, err := tx.Exec(ctx, `update accounts set n = n + 1 where name = $1`, name)
	return err
}
