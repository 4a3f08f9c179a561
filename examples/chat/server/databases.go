package server

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/store"
)

// database is one that may keep the chat's own tables, the records, or both.
type database struct {
	chatdb.DB

	name    string
	store   store.TxStore[chatdb.Tx]
	migrate func(ctx context.Context) error // makes the store's tables
}

// openDatabases opens one database or two, and creates their tables.
func (s *app) openDatabases(ctx context.Context) (err error) {
	if s.domain, err = openDatabase(ctx, s.config.db, s.config); err != nil {
		return err
	}
	if err := makeTables(ctx, s.domain); err != nil {
		return fmt.Errorf("open %s: %w", s.domain.name, err)
	}
	s.records = s.domain
	if s.config.records != s.config.db {
		if s.records, err = openDatabase(ctx, s.config.records, s.config); err != nil {
			return err
		}
	}
	// The chat's own database has the records of the queue in every mode.
	for _, db := range []*database{s.domain, s.records} {
		if err := db.migrate(ctx); err != nil { // twice is fine
			return fmt.Errorf("open %s: %w", db.name, err)
		}
	}
	return nil
}

// openDatabase opens the database that a flag named, and sees that it answers.
func openDatabase(ctx context.Context, named string, c config) (*database, error) {
	open := openSQLite
	if isPostgres(named) {
		open = openPostgres
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

// shown is how a database may be shown to people.
func shown(named string) string {
	if u, err := url.Parse(named); err == nil && isPostgres(named) {
		u.RawQuery = "" // it may hold a password, too
		return u.Redacted()
	}
	return named
}

// startBound is how long a server that starts waits for its databases, and how
// long others may keep it from its tables.
const startBound = 30 * time.Second

// makeTables creates what is missing of the chat's own tables, however many
// servers do so at the same time.
func makeTables(ctx context.Context, db chatdb.DB) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	for {
		err := transaction(db)(ctx, chatdb.MigrateTx)
		if err == nil || !isBusy(err) || ctx.Err() != nil {
			return err
		}
	}
}

func (s *app) closeDatabases() {
	for _, db := range []*database{s.domain, s.records} {
		if db != nil {
			_ = db.Close() // twice is fine
		}
	}
}
