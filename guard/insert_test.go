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
)

// user is a row of the table users, whose id is the business key.
type user struct{ ID, Mail, MadeBy string }

func scanUser(row guard.Row) (u user, err error) {
	err = row.Scan(&u.ID, &u.Mail, &u.MadeBy)
	return u, err
}

func newUser[Tx any](d *domain[Tx], u user) guard.Insertion[user] {
	return guard.Insertion[user]{
		Insert: d.query(`INSERT INTO users (id, mail, made_by) VALUES (?, ?, ?)`, u.ID, u.Mail, u.MadeBy),
		Select: d.query(`SELECT id, mail, made_by FROM users WHERE id = ?`, u.ID),
		Scan:   scanUser,
	}
}

// TestInsertRace: of 64 callers, one inserts the row, and all receive it.
func TestInsertRace(t *testing.T) {
	t.Parallel()
	onAll(t, suite{sql: raceInserts[*sql.Tx], pgx: raceInserts[pgx.Tx]})
}

func raceInserts[Tx any](t *testing.T, d *domain[Tx]) {
	t.Helper()
	e := newEngine(t, d.Store, semel.Options{})
	op := semel.Define("register", semel.OperationOptions[string]{})
	for round := range rounds(5) {
		id := strconv.Itoa(round)
		var inserted atomic.Int64
		var all sync.WaitGroup
		got := make([]user, callers)
		for i := range callers {
			all.Go(func() {
				own := user{id, id + "@example.com", strconv.Itoa(i)}
				var replayed bool
				var err error
				if i%2 == 0 {
					got[i], replayed, err = guard.Insert(t.Context(), d.conn, newUser(d, own))
				} else {
					call := op.Call(me, id+"/"+own.MadeBy, "")
					// SQLite has one writer at a time, and a transaction that waits for it too long is refused.
					for {
						_, _, err = semel.DoTx(t.Context(), e, call, func(ctx context.Context, tx Tx) (user, error) {
							got[i], replayed, err = guard.Insert(ctx, d.of(tx), newUser(d, own))
							return got[i], err
						})
						if !errors.Is(err, semel.ErrInProgress) {
							break
						}
					}
				}
				check.NoError(t, err, "caller %d", i)
				if !replayed {
					inserted.Add(1)
				}
			})
		}
		all.Wait()
		for i, u := range got {
			if u != got[0] || u.ID != id {
				t.Errorf("caller %d received %+v, caller 0 %+v", i, u, got[0])
			}
		}
		check.Equal(t, inserted.Load(), 1, "callers inserted the row")
	}
}

// TestInsertInATransaction: after a violation, the caller's transaction goes on, with what
// it did before; the violation of another index, and wrong statements, are errors.
func TestInsertInATransaction(t *testing.T) {
	t.Parallel()
	onAll(t, suite{sql: insertInTx[*sql.Tx], pgx: insertInTx[pgx.Tx]})
}

func insertInTx[Tx any](t *testing.T, d *domain[Tx]) {
	t.Helper()
	ann := user{"ann", "ann@example.com", "first"}
	if u, replayed, err := guard.Insert(t.Context(), d.conn, newUser(d, ann)); u != ann || replayed || err != nil {
		t.Fatalf("the first insert: %+v, %v, %v", u, replayed, err)
	}
	tx := d.Begin()
	check.Require(t, d.addEffect(t.Context(), tx, "before"))
	insert := func(n guard.Insertion[user]) (user, bool, error) { return guard.Insert(t.Context(), d.of(tx), n) }
	again := user{"ann", "other@example.com", "second"}
	if u, replayed, err := insert(newUser(d, again)); u != ann || !replayed || err != nil {
		t.Errorf("the second insert: %+v, %v, %v", u, replayed, err)
	}
	ignoring := newUser(d, again)
	ignoring.Insert = d.query(`INSERT INTO users (id, mail, made_by) VALUES ('ann', 'x', 'y') ON CONFLICT DO NOTHING`)
	if d.dialect == guard.MySQL {
		ignoring.Insert = d.query(`INSERT IGNORE INTO users (id, mail, made_by) VALUES ('ann', 'x', 'y')`)
	}
	if u, replayed, err := insert(ignoring); u != ann || !replayed || err != nil {
		t.Errorf("an insert that ignores conflicts: %+v, %v, %v", u, replayed, err)
	}
	if u, replayed, err := insert(newUser(d, user{"bob", ann.Mail, "third"})); err == nil || replayed || !strings.Contains(strings.ToLower(err.Error()), "mail") {
		t.Errorf("a violation of the other index: %+v, %v, %v, want the driver's error", u, replayed, err)
	}
	several := newUser(d, user{"cay", "cay@example.com", ""})
	several.Insert = d.query(`INSERT INTO users (id, mail, made_by) VALUES ('cay', 'c', ''), ('dan', 'd', '')`)
	if _, _, err := insert(several); !errors.Is(err, guard.ErrRows) {
		t.Errorf("two rows: %v, want ErrRows", err)
	}
	lost := newUser(d, user{"eve", "eve@example.com", ""})
	lost.Select = d.query(`SELECT id, mail, made_by FROM users WHERE id = 'another'`)
	if _, _, err := insert(lost); err == nil {
		t.Error("a select that does not find the inserted row is no error")
	}
	if _, _, err := insert(guard.Insertion[user]{}); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("an empty Insertion: %v, want ErrInvalid", err)
	}
	check.NoError(t, d.Commit(tx), "the caller's transaction")
	var n int
	if d.Scan(&n, `SELECT count(*) FROM users`); n != 1 || d.count("effects", "before") != 1 {
		t.Errorf("%d users, %d effects, want one of each", n, d.count("effects", "before"))
	}
}
