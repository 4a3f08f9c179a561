package guard_test

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/guard"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
)

// order is a row of the table orders.
type order struct {
	ID, State string
	Changes   int
}

var orderStates = guard.Transitions[string]{"paid": {"new"}, "shipped": {"paid"}, "cancelled": {"new", "paid"}}

func scanOrder(row guard.Row) (o order, state string, err error) {
	err = row.Scan(&o.ID, &o.State, &o.Changes)
	return o, o.State, err
}

// orderChange is a correct transition of an order.
func orderChange[Tx any](d *domain[Tx], id, to string) guard.Change[order, string] {
	return guard.Change[order, string]{
		Allowed: orderStates, To: to, Scan: scanOrder,
		Update: d.query(`UPDATE orders SET state = ?, changes = changes + 1 WHERE id = ? AND state = ?`, guard.To, id, guard.From),
		Select: d.query(`SELECT id, state, changes FROM orders WHERE id = ?`, id),
	}
}

func (d *domain[Tx]) newOrder(id string) {
	d.t.Helper()
	d.Exec(d.text(`INSERT INTO orders (id, state) VALUES (?, 'new')`), id)
}

const callers = 64

// TestTransitionRace: of 64 callers, one changes the row, and the others receive
// ErrConflict and the changed row. Half of them use a transaction.
func TestTransitionRace(t *testing.T) {
	t.Parallel()
	onAll(t, suite{sql: raceTransitions[*sql.Tx], pgx: raceTransitions[pgx.Tx]})
}

func raceTransitions[Tx any](t *testing.T, d *domain[Tx]) {
	t.Helper()
	e := newEngine(t, d.Store, semel.Options{MaxWaiters: callers})
	op := semel.Define("pay", semel.OperationOptions[string]{})
	for round := range rounds(5) {
		id := strconv.Itoa(round)
		d.newOrder(id)
		var changed, conflicts atomic.Int64
		var all sync.WaitGroup
		start := make(chan struct{})
		for i := range callers {
			all.Go(func() {
				<-start
				var now order
				var err error
				if i%2 == 0 {
					now, err = guard.Transition(t.Context(), d.conn, orderChange(d, id, "paid"))
				} else {
					_, _, err = semel.DoTx(t.Context(), e, op.Call(me, id+string(rune('A'+i)), ""), func(ctx context.Context, tx Tx) (order, error) {
						now, err = guard.Transition(ctx, d.of(tx), orderChange(d, id, "paid"))
						return now, err
					})
				}
				switch {
				case err == nil:
					changed.Add(1)
				case errors.Is(err, guard.ErrConflict):
					conflicts.Add(1)
				default:
					t.Errorf("caller %d: %v", i, err)
				}
				if err == nil && now != (order{id, "paid", 1}) || now.State != "paid" && errors.Is(err, guard.ErrConflict) {
					t.Errorf("caller %d received the row %+v with %v", i, now, err)
				}
			})
		}
		close(start)
		all.Wait()
		if changed.Load() != 1 || conflicts.Load() != callers-1 {
			t.Errorf("%d callers changed the row, %d met a conflict, want 1 and %d", changed.Load(), conflicts.Load(), callers-1)
		}
	}
}

// TestTransitionsAllowed: only declared transitions change the row, and an undeclared one
// returns the current row.
func TestTransitionsAllowed(t *testing.T) {
	t.Parallel()
	onAll(t, suite{sql: allowTransitions[*sql.Tx], pgx: allowTransitions[pgx.Tx]})
}

func allowTransitions[Tx any](t *testing.T, d *domain[Tx]) {
	t.Helper()
	d.newOrder("a")
	for _, step := range []struct {
		to   string
		want order
		ok   bool
	}{
		{"shipped", order{"a", "new", 0}, false},
		{"paid", order{"a", "paid", 1}, true},
		{"paid", order{"a", "paid", 1}, false},
		{"cancelled", order{"a", "cancelled", 2}, true},
		{"shipped", order{"a", "cancelled", 2}, false},
	} {
		got, err := guard.Transition(t.Context(), d.conn, orderChange(d, "a", step.to))
		if got != step.want || (err == nil) != step.ok || err != nil && !errors.Is(err, guard.ErrConflict) {
			t.Errorf("to %s: %+v, %v, want %+v", step.to, got, err, step.want)
		}
	}
	if _, err := guard.Transition(t.Context(), d.conn, orderChange(d, "missing", "paid")); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("a missing row: %v, want sql.ErrNoRows", err)
	}
}

// TestTransitionChecksTheSQL: wrong statements are errors, their changes are undone, and
// a transaction of the caller can go on and commit.
func TestTransitionChecksTheSQL(t *testing.T) {
	t.Parallel()
	onAll(t, suite{sql: wrongTransitions[*sql.Tx], pgx: wrongTransitions[pgx.Tx]})
}

func wrongTransitions[Tx any](t *testing.T, d *domain[Tx]) {
	t.Helper()
	d.newOrder("a")
	d.newOrder("b")
	update := func(s string, args ...any) func(*guard.Change[order, string]) {
		return func(c *guard.Change[order, string]) { c.Update = d.query(s, args...) }
	}
	for name, test := range map[string]struct {
		wrong func(*guard.Change[order, string])
		want  error
		says  string
	}{
		"several rows":   {update(`UPDATE orders SET state = ? WHERE state = ?`, guard.To, guard.From), guard.ErrRows, "2 rows"},
		"other state":    {update(`UPDATE orders SET state = 'lost' WHERE id = 'a' AND ? <> ?`, guard.To, guard.From), semel.ErrInvalid, "lost"},
		"other id":       {update(`UPDATE orders SET state = ? WHERE id = 'c' AND state = ?`, guard.To, guard.From), guard.ErrConflict, "another condition"},
		"no From":        {update(`UPDATE orders SET state = ? WHERE id = 'a'`, guard.To), semel.ErrInvalid, "guard.From"},
		"no To":          {update(`UPDATE orders SET state = 'paid' WHERE id = 'a' AND state = ?`, guard.From), semel.ErrInvalid, "guard.To"},
		"syntax":         {update(`UPDATE orderz SET state = ? WHERE id = 'a' AND state = ?`, guard.To, guard.From), nil, "orderz"},
		"undeclared":     {func(c *guard.Change[order, string]) { c.To = "refunded" }, semel.ErrInvalid, "no transition to refunded"},
		"without a scan": {func(c *guard.Change[order, string]) { c.Scan = nil }, semel.ErrInvalid, "Scan"},
	} {
		for where, conn := range map[string]func(Tx) guard.Conn{"tx": d.of, "db": nil} {
			c := orderChange(d, "a", "paid")
			test.wrong(&c)
			var err error
			if conn == nil {
				_, err = guard.Transition(t.Context(), d.conn, c)
			} else {
				tx := d.Begin()
				_, err = guard.Transition(t.Context(), conn(tx), c)
				check.NoError(t, d.Commit(tx), "%s: the caller's transaction", name)
			}
			if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s, %s: %v, want %v with %q", name, where, err, test.want, test.says)
			}
			for _, id := range []string{"a", "b"} {
				var state string
				if d.Scan(&state, d.text(`SELECT state FROM orders WHERE id = ?`), id); state != "new" {
					t.Errorf("%s, %s: the state of %s is %s", name, where, id, state)
				}
			}
		}
	}
}

// TestTransitionOnAForeignType: a type that is neither a transaction nor a database is
// refused, because a savepoint could be on another connection.
func TestTransitionOnAForeignType(t *testing.T) {
	t.Parallel()
	d := onSQLite(t)
	d.newOrder("a")
	pool := struct{ guard.SQLConn }{ledger.OpenSQLite(t, t.TempDir()+"/other.db")}
	must(pool.ExecContext(t.Context(), `CREATE TABLE orders (id TEXT, state TEXT, changes INT)`))
	must(pool.ExecContext(t.Context(), `INSERT INTO orders VALUES ('a', 'new', 0)`))
	if _, err := guard.Transition(t.Context(), guard.SQL(pool), orderChange(d, "a", "paid")); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}
