package orm_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/orm"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
)

// inserts are the libraries under test.
func inserts(t *testing.T, db *sql.DB) map[string]orm.Insert {
	t.Helper()
	byGORM, err := orm.GORM(db)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]orm.Insert{"gorm": byGORM, "bun": orm.Bun(db), "ent": orm.Ent, "sqlx": orm.SQLX(db), "sqlc": orm.SQLC}
}

func open(t *testing.T) (*sql.DB, *semel.Engine[*sql.Tx]) {
	t.Helper()
	db, engine, err := orm.Open(t.Context(), realtest.Postgres(t).Database(t), semel.Options{Survive: store.NoFailure, RecordTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), orm.Schema+`; INSERT INTO stock VALUES ('tea', 100)`); err != nil {
		t.Fatal(err)
	}
	return db, engine
}

// rows returns the number of orders and the stock of tea.
func rows(t *testing.T, db *sql.DB) (orders, tea int) {
	t.Helper()
	err := db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM orders), (SELECT amount FROM stock WHERE item = 'tea')`).Scan(&orders, &tea)
	if err != nil {
		t.Fatal(err)
	}
	return orders, tea
}

// A retry with the same key receives the same order, and no rows are written again.
func TestPlace(t *testing.T) {
	t.Attr("engine", "postgres")
	db, engine := open(t)
	for name, insert := range inserts(t, db) {
		orders, tea := rows(t, db)
		in := orm.NewOrder{Item: "tea", Amount: 2}
		first, replayed, err := orm.Place(t.Context(), engine, name, in, insert)
		if err != nil || replayed || first.ID == 0 {
			t.Errorf("%s: the first call = %+v, %t, %v, want an order", name, first, replayed, err)
		}
		again, replayed, err := orm.Place(t.Context(), engine, name, in, insert)
		if err != nil || !replayed || again != first {
			t.Errorf("%s: the second call = %+v, %t, %v, want %+v again", name, again, replayed, err, first)
		}
		if n, left := rows(t, db); n != orders+1 || left != tea-2 {
			t.Errorf("%s: %d more orders and %d less tea, want 1 and 2", name, n-orders, tea-left)
		}
	}
}

// An error of the library rolls the rows and the record back. An answer that is final is
// stored without the rows.
func TestPlaceFails(t *testing.T) {
	t.Attr("engine", "postgres")
	db, engine := open(t)
	for name, insert := range inserts(t, db) {
		in := orm.NewOrder{Item: "tea", Amount: 1000} // more than the stock allows
		if _, _, err := orm.Place(t.Context(), engine, name+" too much", in, insert); err == nil {
			t.Errorf("%s: an order that the database refuses = nil, want an error", name)
		}
		unknown := orm.NewOrder{Item: "coffee", Amount: 1}
		for _, wantReplay := range []bool{false, true} {
			_, _, err := orm.Place(t.Context(), engine, name+" unknown", unknown, insert)
			if err == nil || !strings.Contains(err.Error(), orm.ErrUnknownItem.Error()) || semel.Replayed(err) != wantReplay {
				t.Errorf("%s: an unknown item = %v, want a stored failure, replayed %t", name, err, wantReplay)
			}
		}
		if orders, tea := rows(t, db); orders != 0 || tea != 100 {
			t.Errorf("%s: %d orders and %d tea, want none and 100", name, orders, tea)
		}
		if _, replayed, err := orm.Place(t.Context(), engine, name+" too much", in, insert); err == nil || replayed {
			t.Errorf("%s: the key after a rollback = %t, %v, want another attempt", name, replayed, err)
		}
	}
}
