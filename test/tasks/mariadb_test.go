//go:build unix

package tasks_test

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	mysqlmigrate "github.com/semelgo/semel/migrate/mysql"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/mysql"
)

// tables is a database whose statements have the placeholders $1, $2 and so on, each
// once and in this order.
type tables struct {
	*sql.DB

	questionMarks bool // the driver knows no other placeholders
}

var placeholder = regexp.MustCompile(`\$\d`)

func (t tables) text(query string) string {
	if !t.questionMarks {
		return query
	}
	return placeholder.ReplaceAllString(query, "?")
}

func (t tables) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return t.DB.ExecContext(ctx, t.text(query), args...)
}

func (t tables) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return t.DB.QueryContext(ctx, t.text(query), args...)
}

func (t tables) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return t.DB.QueryRowContext(ctx, t.text(query), args...)
}

// addEffect writes the effect of a task.
func (t tables) addEffect(ctx context.Context, e effect) error {
	_, err := t.ExecContext(ctx, insertEffect, e.key, e.attempt, int64(e.owner), e.process)
	return err
}

func openMariaDB(_ context.Context, at string) (*database[*sql.Tx], error) {
	config, err := driver.ParseDSN(at)
	if err != nil {
		return nil, err
	}
	config.Logger = &driver.NopLogger{}                                // connections end with their processes
	config.Params = map[string]string{"idle_transaction_timeout": "2"} // stopped workers hold locks
	db, err := mysql.OpenConfig(config)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	config.Params = map[string]string{"sql_mode": "'STRICT_TRANS_TABLES,PIPES_AS_CONCAT'"}
	connector, err := driver.NewConnector(config)
	if err != nil {
		return nil, err
	}
	direct := tables{DB: sql.OpenDB(connector), questionMarks: true}
	direct.SetMaxOpenConns(8)
	records, err := mysql.New(db, mysql.Options{})
	return &database[*sql.Tx]{
		store: records,
		exec: func(ctx context.Context, tx *sql.Tx, statement string, args ...any) error {
			_, err := tx.ExecContext(ctx, direct.text(statement), args...)
			return err
		},
		transact: func(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
			var err error
			_ = realtest.Retry(ctx, func() bool { // err says more
				err = inTransaction(ctx, db, fn)
				return !errors.Is(err, store.ErrConflict)
			})
			return err
		},
		tables: direct,
		close:  func() { _ = direct.Close(); _ = db.Close() },
	}, err
}

func inTransaction(ctx context.Context, db *sql.DB, fn func(context.Context, *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(ctx, tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// inMariaDB creates a database with its tables on a server of its own.
func inMariaDB(t *testing.T) (databaseAddress, *database[*sql.Tx]) {
	t.Helper()
	t.Attr("engine", "mariadb")
	// Without the lock mode, an INSERT … SELECT of a trigger locks the whole table, and the
	// store does not wait for locks.
	at := realtest.OwnMariaDB(t, "max_connections=400", "innodb_autoinc_lock_mode=2").Database(t)
	s := check.Must(openMariaDB(t.Context(), at))(t)
	check.Require(t, mysqlmigrate.Up(t.Context(), s.tables.DB, mysqlmigrate.Options{}))
	return databaseAddress{"mariadb", at}, newDatabase(t, s, nil, mariadbTables())
}
