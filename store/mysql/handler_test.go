package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
)

// handler is a function that Atomic runs.
type handler = func(ctx context.Context, tx *sql.Tx) error

// atomic runs a handler that first writes an effect, and whose success changes the
// record of key.
func atomic(t *testing.T, db *sql.DB, key string, run handler) (store.Verdict, error) {
	t.Helper()
	last := create(key, store.Succeeded, 1)
	return newStore(t, db).Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
			if err := effect(ctx, tx, key); err != nil {
				return nil, err
			}
			if err := run(ctx, tx); err != nil {
				return nil, err
			}
			return &last, nil
		})
}

// deadlock makes tx the victim of a deadlock, and returns its error. It changes the rows
// 1 and 2 of the table pairs.
func deadlock(ctx context.Context, t *testing.T, db *sql.DB, tx *sql.Tx) error {
	t.Helper()
	other, err := db.BeginTx(ctx, nil)
	check.Require(t, err)
	defer func() { _ = other.Rollback() }() // it may have ended
	var id int64
	check.Require(t, other.QueryRowContext(ctx, `SELECT connection_id()`).Scan(&id))
	mustExec(t, other, `UPDATE pairs SET n = n + 1 WHERE id > 1`) // many rows: the other one is the victim
	mustExec(t, tx, `UPDATE pairs SET n = n + 1 WHERE id = 1`)
	done := make(chan error, 1)
	go func() {
		_, err := other.ExecContext(ctx, `UPDATE pairs SET n = n + 1 WHERE id = 1`)
		done <- err
	}()
	waitForLock(ctx, t, db, id)
	_, err = tx.ExecContext(ctx, `UPDATE pairs SET n = n + 1 WHERE id = 2`)
	if failed := <-done; failed != nil {
		t.Errorf("the other transaction: %v; %v", failed, err)
	}
	return err
}

// waitForLock returns when the connection waits for a lock. The table INNODB_TRX would
// not do: the server renews it only if no query has read it for 100 ms.
func waitForLock(ctx context.Context, t *testing.T, db *sql.DB, id int64) {
	t.Helper()
	own := fmt.Sprintf("thread id %d,", id)
	check.Require(t, realtest.Retry(ctx, func() bool {
		var kind, name, status string
		check.Require(t, db.QueryRowContext(ctx, `SHOW ENGINE INNODB STATUS`).Scan(&kind, &name, &status))
		for transaction := range strings.SplitSeq(status, "---TRANSACTION") {
			if strings.Contains(transaction, "LOCK WAIT") && strings.Contains(transaction, own) {
				return true
			}
		}
		return false
	}))
}

func createPairs(t *testing.T, db *sql.DB) {
	t.Helper()
	mustExec(t, db, `CREATE TABLE pairs (id INT PRIMARY KEY, n INT NOT NULL)`)
	mustExec(t, db, `INSERT INTO pairs SELECT seq, 0 FROM seq_1_to_50`)
}

// A handler that ignores a deadlock has half of its statements rolled back. Nothing is
// committed, and the statements after the deadlock are refused.
func TestIgnoredDeadlock(t *testing.T) {
	t.Parallel()
	db := connect(t, database(t))
	createPairs(t, db)
	verdict, err := atomic(t, db, "key", func(ctx context.Context, tx *sql.Tx) error {
		check.Fails(t, deadlock(ctx, t, db, tx), "no deadlock")
		check.ErrorIs(t, effect(ctx, tx, "key"), store.ErrConflict, "a statement after the deadlock")
		return nil
	})
	if verdict != store.NotCommitted || !errors.Is(err, store.ErrConflict) || effects(t, db, "key") != 0 {
		t.Errorf("Atomic = %v, %v with %d effects, want NotCommitted, ErrConflict and none", verdict, err, effects(t, db, "key"))
	}
}

// The same holds in a transaction of the application.
func TestIgnoredDeadlockOutsideAtomic(t *testing.T) {
	t.Parallel()
	db := connect(t, database(t))
	createPairs(t, db)
	tx := check.Must(db.BeginTx(t.Context(), nil))(t)
	mustExec(t, tx, `INSERT INTO effects (k) VALUES ('before')`)
	if err := deadlock(t.Context(), t, db, tx); err == nil {
		t.Fatal("no deadlock")
	}
	check.Fails(t, effect(t.Context(), tx, "after"), "a statement after the deadlock is accepted")
	check.ErrorIs(t, tx.Commit(), store.ErrConflict, "Commit")
	check.Equal(t, effects(t, db, "before")+effects(t, db, "after"), 0, "effects are committed")
}

// A statement that waited too long for a lock is undone, and the transaction goes on.
// If the handler ignores that, nothing is committed. If it goes back to a savepoint, the
// rest is.
func TestIgnoredLockWait(t *testing.T) {
	t.Parallel()
	db := connect(t, database(t))
	createPairs(t, db)
	lock, err := db.BeginTx(t.Context(), nil)
	check.Require(t, err)
	defer func() { _ = lock.Rollback() }() // it may have ended
	mustExec(t, lock, `UPDATE pairs SET n = n + 1 WHERE id = 1`)
	wait := func(ctx context.Context, tx *sql.Tx) {
		if _, err := tx.ExecContext(ctx, `SELECT * FROM pairs WHERE id = 1 FOR UPDATE NOWAIT`); err == nil {
			t.Error("the lock was granted")
		}
	}
	verdict, err := atomic(t, db, "ignored", func(ctx context.Context, tx *sql.Tx) error {
		wait(ctx, tx)
		return nil
	})
	if verdict != store.NotCommitted || !errors.Is(err, store.ErrInterrupted) || effects(t, db, "ignored") != 0 {
		t.Errorf("Atomic = %v, %v with %d effects, want NotCommitted, ErrInterrupted and none", verdict, err, effects(t, db, "ignored"))
	}
	verdict, err = atomic(t, db, "undone", func(ctx context.Context, tx *sql.Tx) error {
		mustExec(t, tx, `SAVEPOINT mine`)
		wait(ctx, tx)
		mustExec(t, tx, `ROLLBACK TO SAVEPOINT mine`)
		return nil
	})
	if verdict != store.Committed || err != nil || effects(t, db, "undone") != 1 {
		t.Errorf("Atomic = %v, %v with %d effects, want Committed and one", verdict, err, effects(t, db, "undone"))
	}
}

// Whatever a handler does to its transaction, the verdict is true, and no record says
// that an effect happened that did not.
func TestHandlerEndsTransaction(t *testing.T) {
	t.Parallel()
	db := connect(t, database(t))
	createPairs(t, db)
	texts := func(all ...string) handler {
		return func(ctx context.Context, tx *sql.Tx) error {
			for _, text := range all {
				if _, err := tx.ExecContext(ctx, text); err != nil {
					return fmt.Errorf("%s: %w", text, err)
				}
			}
			return nil
		}
	}
	// inAutocommit rolls back, and writes an effect that the server commits at once.
	inAutocommit := func(ctx context.Context, tx *sql.Tx, key string) {
		mustExec(t, tx, `ROLLBACK`)
		check.Require(t, effect(ctx, tx, key))
	}
	for name, row := range map[string]struct {
		run     handler
		want    store.Verdict
		effects int
	}{
		"commit":               {texts(`COMMIT`), store.Committed, 1},
		"commit and begin":     {texts(`COMMIT`, `BEGIN`), store.Committed, 1},
		"create table":         {texts(`CREATE TABLE made (id INT)`), store.Committed, 1},
		"rollback":             {texts(`ROLLBACK`), store.Unknown, 0},
		"rollback and begin":   {texts(`ROLLBACK`, `BEGIN`), store.Unknown, 0},
		"begin":                {texts(`BEGIN`), store.Committed, 1},
		"begin and savepoint":  {texts(`BEGIN`, `SAVEPOINT mine`), store.Committed, 1},
		"method Commit":        {func(_ context.Context, tx *sql.Tx) error { _ = tx.Commit(); return nil }, store.NotCommitted, 0},
		"method Rollback":      {func(_ context.Context, tx *sql.Tx) error { return tx.Rollback() }, store.NotCommitted, 0},
		"commit and an error":  {func(ctx context.Context, tx *sql.Tx) error { _ = texts(`COMMIT`)(ctx, tx); return errors.New("failed") }, store.Committed, 1},
		"rollback to own mark": {texts(`ROLLBACK TO SAVEPOINT semelrun`, `RELEASE SAVEPOINT semelrun`), store.Unknown, 0},
		"rollback and a deadlock": {func(ctx context.Context, tx *sql.Tx) error {
			inAutocommit(ctx, tx, "rollback and a deadlock")
			mustExec(t, tx, `BEGIN`)
			return deadlock(ctx, t, db, tx)
		}, store.Unknown, 1},
		"rollback and a lost connection": {func(ctx context.Context, tx *sql.Tx) error {
			inAutocommit(ctx, tx, "rollback and a lost connection")
			kill(ctx, t, db, tx)
			return effect(ctx, tx, "lost")
		}, store.Unknown, 1},
	} {
		verdict, err := atomic(t, db, name, row.run)
		n := effects(t, db, name)
		if verdict != row.want || !errors.Is(err, store.ErrTxEndedByHandler) || n != row.effects {
			t.Errorf("%s: Atomic = %v, %v with %d effects, want %v, ErrTxEndedByHandler and %d", name, verdict, err, n, row.want, row.effects)
		}
		if token := current(t, newStore(t, db), create(name, store.Succeeded, 1)); token != (store.Token{}) {
			t.Errorf("%s: the record is %v, want none", name, token)
		}
	}
}

// A connection that is lost in the handler commits nothing, whether the handler
// notices it or not.
func TestKilledConnection(t *testing.T) {
	t.Parallel()
	db := connect(t, database(t))
	for name, after := range map[string]handler{
		"unnoticed": func(context.Context, *sql.Tx) error { return nil },
		"ignored":   func(ctx context.Context, tx *sql.Tx) error { _ = effect(ctx, tx, "ignored"); return nil },
		"returned":  func(ctx context.Context, tx *sql.Tx) error { return effect(ctx, tx, "returned") },
	} {
		verdict, err := atomic(t, db, name, func(ctx context.Context, tx *sql.Tx) error {
			kill(ctx, t, db, tx)
			return after(ctx, tx)
		})
		want := name != "unnoticed"
		if verdict == store.Committed || err == nil || want && (verdict != store.NotCommitted || !errors.Is(err, store.ErrInterrupted)) {
			t.Errorf("%s: Atomic = %v, %v, want NotCommitted and ErrInterrupted, or Unknown if the loss was not noticed", name, verdict, err)
		}
		check.Equal(t, effects(t, db, name), 0, "%s: effects", name)
	}
}

// kill ends the connection of tx.
func kill(ctx context.Context, t *testing.T, db *sql.DB, tx *sql.Tx) {
	t.Helper()
	var id int64
	check.Require(t, tx.QueryRowContext(ctx, `SELECT connection_id()`).Scan(&id))
	mustExec(t, db, fmt.Sprintf(`KILL %d`, id))
}

// A statement that cannot end the transaction leaves the verdict certain when the
// connection is lost after it.
func TestKilledConnectionAfterHarmlessStatement(t *testing.T) {
	t.Parallel()
	db := connect(t, database(t))
	for _, text := range []string{
		"SELECT\n1", "(SELECT 1) UNION (SELECT 2)", "select(1)", "WITH a AS (SELECT 1) SELECT * FROM a", "VALUES (1)",
		"SHOW TABLES", "EXPLAIN SELECT 1", "DESCRIBE effects", "DESC effects", "DO 1", "INSERT\tINTO effects VALUES ('text');\n",
		"SAVEPOINT mine", "ROLLBACK TO SAVEPOINT semelrun", "ROLLBACK WORK TO semelrun", "rollback\nto semelrun",
	} {
		verdict, err := atomic(t, db, text, func(ctx context.Context, tx *sql.Tx) error {
			mustExec(t, tx, text)
			kill(ctx, t, db, tx)
			return effect(ctx, tx, text)
		})
		if verdict != store.NotCommitted || !errors.Is(err, store.ErrInterrupted) || effects(t, db, text) != 0 {
			t.Errorf("%q: Atomic = %v, %v with %d effects, want NotCommitted, ErrInterrupted and none", text, verdict, err, effects(t, db, text))
		}
	}
}

// With the setting multiStatements of the driver, one text can end the transaction after
// its first statement.
func TestSeveralStatementsInOneText(t *testing.T) {
	t.Parallel()
	name := database(t)
	config, err := driver.ParseDSN(name)
	check.Require(t, err)
	config.MultiStatements = true
	db := connect(t, config.FormatDSN())
	verdict, err := atomic(t, db, "key", func(ctx context.Context, tx *sql.Tx) error {
		mustExec(t, tx, `DELETE FROM effects WHERE k = 'none'; COMMIT`)
		kill(ctx, t, db, tx)
		return effect(ctx, tx, "lost")
	})
	if verdict != store.Committed || !errors.Is(err, store.ErrTxEndedByHandler) || effects(t, db, "key") != 1 {
		t.Errorf("Atomic = %v, %v with %d effects, want Committed, ErrTxEndedByHandler and one", verdict, err, effects(t, db, "key"))
	}
}

// A result that the handler has left open is an error.
func TestOpenResult(t *testing.T) {
	t.Parallel()
	db := connect(t, database(t))
	verdict, err := atomic(t, db, "key", func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT seq FROM seq_1_to_100000`) //nolint:sqlclosecheck // as a careless handler
		if err != nil {
			return err
		}
		rows.Next()
		return rows.Err()
	})
	if verdict != store.NotCommitted || err == nil || effects(t, db, "key") != 0 {
		t.Errorf("Atomic = %v, %v with %d effects, want NotCommitted, an error and none", verdict, err, effects(t, db, "key"))
	}
}

// A COMMIT without an answer is Unknown after its limit.
func TestHungCommit(t *testing.T) {
	t.Parallel()
	server := realtest.OwnMariaDB(t)
	db := connect(t, migrated(t, server))
	s := newStore(t, db)
	s.SetCommitBound(100e6)
	lock, err := db.Conn(t.Context())
	check.Require(t, err)
	defer lock.Close()
	last := create("key", store.Succeeded, 1)
	verdict, err := s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
			mustExec(t, lock, `FLUSH TABLES WITH READ LOCK`)
			return &last, nil
		})
	if verdict != store.Unknown || err == nil {
		t.Errorf("Atomic = %v, %v, want Unknown and an error", verdict, err)
	}
	mustExec(t, lock, `UNLOCK TABLES`)
}
