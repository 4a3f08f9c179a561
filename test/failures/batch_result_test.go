package failures_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
)

type order struct{ ID, Amount int }

// TestBatchThatReturnsItsID: a callback scans a statement's result into the
// operation's result after that was stored. Every caller receives the stored one,
// and an alarm reports it.
func TestBatchThatReturnsItsID(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "postgres")
	url := realtest.Postgres(t).Database(t)
	w := newFixture(t, inPostgres(t, url, url), "returning")
	check.Must(ledger.Pool(t, url).Exec(t.Context(), `CREATE TABLE orders (id int GENERATED ALWAYS AS IDENTITY, amount int)`))(t)
	e := w.process(t, w.Store)
	call := semel.Define("order", semel.OperationOptions[int]{}).Call(semel.ScopeOf("ann"), "k", 7)
	for _, replayed := range []bool{false, true, true} {
		got, again, err := semel.DoBatch(t.Context(), e, call, func(context.Context) (*order, *pgx.Batch, error) {
			made, b := &order{Amount: 7}, &pgx.Batch{}
			b.Queue(`INSERT INTO orders (amount) VALUES ($1) RETURNING id`, made.Amount).QueryRow(func(row pgx.Row) error { return row.Scan(&made.ID) })
			return made, b, nil
		})
		if err != nil || again != replayed || *got != (order{Amount: 7}) {
			t.Errorf("DoBatch = %+v, replayed %v, %v, want the stored result without the ID, replayed %v", got, again, err, replayed)
		}
	}
	check.Equal(t, w.seen.count(event.Altered), 1, "alarms %q", event.Altered)
}
