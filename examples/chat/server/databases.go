package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/store"
)

// database holds the chat's own tables, the idempotency records, or both.
type database struct {
	chatdb.DB

	name    string
	store   store.TxStore[chatdb.Tx]
	migrate func(ctx context.Context) error // creates the store's tables
}

// openDatabase opens the database of a flag and checks that it responds.
func openDatabase(ctx context.Context, named string, c config) (*database, error) {
	open := openSQLite
	switch {
	case isPostgres(named):
		open = openPostgres
	case isMySQL(named):
		open = openMySQL
	}
	db, err := open(named, c)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", shown(named), err)
	}
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	if err := db.Ping(ctx); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open %s: %w", db.name, err)
	}
	return db, nil
}

// shown returns a database's name without its password.
func shown(named string) string {
	if u, err := url.Parse(named); err == nil && (isPostgres(named) || isMySQL(named)) {
		u.RawQuery = "" // parameters may hold a password, too
		return u.Redacted()
	}
	return named
}

// startBound limits how long a starting server waits for its databases, and for
// locks on their tables.
const startBound = 30 * time.Second

// makeTables creates missing tables. Several servers may do so at the same time: on
// different nodes of a Galera cluster, one of the transactions is rolled back and retried.
func makeTables(ctx context.Context, db chatdb.DB) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	for {
		err := transaction(db)(ctx, chatdb.MigrateTx)
		const deadlock = 1213
		var refused *mysqldriver.MySQLError
		if !errors.As(err, &refused) || refused.Number != deadlock || ctx.Err() != nil {
			return err
		}
	}
}
