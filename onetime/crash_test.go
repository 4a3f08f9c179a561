package onetime_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	mysqlmigrate "github.com/semelgo/semel/migrate/mysql"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store/mysql"
	"github.com/semelgo/semel/store/sqlite"
)

// TestKilledInTheHandler kills, with kill -9, a process in the handler of a token, and
// submits the token again in another process. In a transaction nothing has happened, and the
// second submit has the only effect. Without one, the policy decides.
func TestKilledInTheHandler(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	for _, s := range storeCases() {
		if s.child == nil {
			continue
		}
		for _, policy := range []string{inOneTx, hold, atLeastOnce} {
			if policy == inOneTx && (s.name == "redis" || s.name == "etcd") { // no transactions
				continue
			}
			for _, point := range []string{before, after} {
				t.Run(strings.Join([]string{s.name, policy, point}, ", "), func(t *testing.T) {
					t.Parallel()
					c := s.child(t)
					c.Policy = policy
					killInTheHandler(t, c, point)
				})
			}
		}
	}
}

func killInTheHandler(t *testing.T, c child, point string) {
	t.Helper()
	migrateChild(t, c)
	db, err := c.open()
	check.Require(t, err)
	t.Cleanup(func() { _ = db.Close() })
	closeAtEnd(t, db.engine)
	check.Must(db.ExecContext(t.Context(), `CREATE TABLE spent (name VARCHAR(255) NOT NULL)`))(t)
	if c.Token, err = db.purpose.Issue(t.Context(), db.engine, subject, time.Hour, order{Name: "o1"}); err != nil {
		t.Fatal(err)
	}
	c.KillAt = point
	config, err := json.Marshal(c)
	check.Require(t, err)
	realtest.StartProcess(t, realtest.Self(t, childVariable+"="+string(config))).AwaitKilled(t)

	v, replayed, err := db.use(t.Context(), c.Token, "")
	effects := 0
	check.Require(t, db.QueryRowContext(t.Context(), `SELECT count(*) FROM spent`).Scan(&effects))
	happened := map[string]int{before: 0, after: 1}[point]
	switch {
	case c.Policy == inOneTx && (v != "placed" || replayed || err != nil || effects != 1):
		t.Errorf("the second submit = %q, %v, %v with %d effects, want the first result and one effect", v, replayed, err, effects)
	case c.Policy == hold && (!errors.Is(err, semel.ErrInDoubt) || effects != happened):
		t.Errorf("the second submit = %q, %v, %v with %d effects, want ErrInDoubt and %d", v, replayed, err, effects, happened)
	case c.Policy == atLeastOnce && (v != "placed" || err != nil || effects != happened+1):
		t.Errorf("the second submit = %q, %v, %v with %d effects, want a result and %d", v, replayed, err, effects, happened+1)
	}
	again, replayed, sameErr := db.use(t.Context(), c.Token, "")
	if again != v || replayed != (err == nil) || !errors.Is(sameErr, err) && err == nil {
		t.Errorf("the third submit = %q, %v, %v, want the answer of the second", again, replayed, sameErr)
	}
}

// migrateChild creates the tables of the records.
func migrateChild(t *testing.T, c child) {
	t.Helper()
	var db *sql.DB
	var err error
	switch c.Driver {
	case "sqlite":
		if db, err = sqlite.Open(c.Address); err == nil {
			err = errors.Join(sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}), db.Close())
		}
	case "mariadb":
		if db, err = mysql.Open(c.Address); err == nil {
			err = errors.Join(mysqlmigrate.Up(t.Context(), db, mysqlmigrate.Options{}), db.Close())
		}
	default:
		err = pgmigrate.Up(t.Context(), ledger.Pool(t, c.Address), pgmigrate.Options{})
	}
	check.Require(t, err, "migrate")
}
