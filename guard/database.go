package guard

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
)

// Dialect is the SQL of a database.
type Dialect uint8

const (
	// PostgreSQL is also the dialect of *sql.DB with a driver for PostgreSQL.
	PostgreSQL Dialect = iota + 1
	// MySQL is the dialect of MySQL and MariaDB.
	MySQL
	// SQLite is the dialect of SQLite.
	SQLite
)

// Schema returns the statement that creates the table semel_guard_rows for [Rows], if
// it is missing. Copy it to the migrations of the domain's database.
func Schema(d Dialect) string {
	id, result, options := "TEXT", "TEXT", ""
	if d == MySQL {
		id, result, options = "CHAR(32) CHARACTER SET ascii COLLATE ascii_bin", "LONGTEXT CHARACTER SET utf8mb4", " ENGINE=InnoDB"
	}
	return "CREATE TABLE IF NOT EXISTS semel_guard_rows (\n" +
		"\tid " + id + " NOT NULL PRIMARY KEY, -- of the record\n" +
		"\tattempt BIGINT NOT NULL, -- the one that committed, or the least that may commit\n" +
		"\tcommitted SMALLINT NOT NULL, -- 1: the effect was committed\n" +
		"\tresult " + result + " NOT NULL, -- as JSON\n" +
		"\twritten BIGINT NOT NULL -- seconds since 1970\n)" + options
}

// Database is the domain's database for [Rows], with transactions of type Tx.
type Database[Tx any] struct {
	conn    Conn
	dialect Dialect
	begin   func(ctx context.Context) (Tx, txConn, error)
}

// SQLDatabase returns the Database of a *sql.DB.
func SQLDatabase(db *sql.DB, d Dialect) Database[*sql.Tx] {
	return Database[*sql.Tx]{SQL(db), d, func(ctx context.Context) (*sql.Tx, txConn, error) {
		tx, err := db.BeginTx(ctx, nil)
		return tx, sqlTx{sqlConn{tx}, tx}, err
	}}
}

// PgxDatabase returns the Database of a *pgxpool.Pool. Its type parameters are
// inferred.
func PgxDatabase[Tx PgxTx[Tag, R], Tag RowCount, R Row](pool PgxConn[Tx, Tag, R]) Database[Tx] {
	return Database[Tx]{Pgx(pool), PostgreSQL, func(ctx context.Context) (Tx, txConn, error) {
		tx, err := pool.Begin(ctx)
		return tx, pgxTx[Tx, Tag, R]{tx}, err
	}}
}

// statement returns a statement with the dialect's placeholders in place of question
// marks.
func (d Dialect) statement(text string, args ...any) Statement {
	if d != PostgreSQL {
		return Query(text, args...)
	}
	var b strings.Builder
	for i := 1; ; i++ {
		before, after, found := strings.Cut(text, "?")
		b.WriteString(before)
		if !found {
			return Query(b.String(), args...)
		}
		b.WriteString("$" + strconv.Itoa(i))
		text = after
	}
}
