package mysql_test

import (
	"bytes"
	"context"
	"database/sql"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/mysql"
	"github.com/semelgo/semel/store/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "mysql")
	runContract(t, func(*mysql.Store) {}, nil)
}

// runContract runs the suite, or some parts of it, on stores of a new database, by connections
// through a proxy that loses replies.
func runContract(t *testing.T, change func(*mysql.Store), parts []string) {
	t.Helper()
	name := database(t)
	proxy := realtest.NewMySQLProxy(t, realtest.MariaDB(t).Addr())
	direct, through := connect(t, name), connect(t, proxy.DSN(name))
	change(newStore(t, through))
	storetest.Run(t, func(t testing.TB) storetest.Subject[*sql.Tx] {
		s := subject(t, direct, through)
		s.Lose = func() func() bool {
			fault := proxy.EatReply(durable())
			return func() bool { return !fault.Disarm() }
		}
		return s
	}, parts...)
}

// durable returns a match of the request that, when it is answered, has made something
// of the records durable: a commit, or a statement that commits by itself.
func durable() realtest.Match {
	commits, inTx := realtest.Commit(), false
	return func(request []byte) bool {
		switch {
		case commits(request):
			inTx = false
			return true
		case bytes.Contains(request, []byte("START TRANSACTION")):
			inTx = true
		case bytes.Equal(request, []byte("ROLLBACK")):
			inTx = false
		}
		return !inTx && (bytes.HasPrefix(request, []byte("INSERT INTO semel_records")) || bytes.HasPrefix(request, []byte("UPDATE semel_records")))
	}
}

// MySQL gets the statements of a script one by one.
func TestContractOneByOne(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Attr("engine", "mysql")
	runContract(t, (*mysql.Store).SendOneByOne, storetest.CallParts())
}

// subject empties the tables: the suite needs hundreds of stores, and that is quicker
// than new databases.
func subject(t testing.TB, direct, through *sql.DB) storetest.Subject[*sql.Tx] {
	t.Helper()
	tx := check.Must(direct.BeginTx(t.Context(), nil))(t)
	for _, table := range []string{"semel_records", "semel_notes", "semel_guard", "effects"} {
		mustExec(t, tx, `DELETE FROM `+table)
	}
	check.Require(t, tx.Commit())
	s := newStore(t, through)
	return storetest.Subject[*sql.Tx]{
		Begin:   beginAt(through),
		Store:   s,
		Effect:  func(ctx context.Context, tx *sql.Tx, key string) error { return effect(ctx, tx, key) },
		Effects: func(key string) int { return effects(t, direct, key) },
		Batches: storetest.BatchesOf(s, batchOf),
	}
}

// beginAt begins transactions of the program at each isolation level.
func beginAt(db *sql.DB) map[string]storetest.BeginFunc[*sql.Tx] {
	levels := make(map[string]storetest.BeginFunc[*sql.Tx])
	for _, level := range []sql.IsolationLevel{sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		levels[level.String()] = func(ctx context.Context) (*sql.Tx, func() error, func() error, error) {
			tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
			return tx, tx.Commit, tx.Rollback, err
		}
	}
	return levels
}

// batchOf has an effect in each statement, or fails.
func batchOf(all []storetest.Statement) *mysql.Batch {
	b := &mysql.Batch{}
	for _, s := range all {
		if s.Fails {
			b.Queue(`INSERT INTO effects (k) VALUES (NULL)`)
		} else {
			b.Queue(`INSERT INTO effects (k) VALUES (?)`, s.Effect)
		}
	}
	return b
}
