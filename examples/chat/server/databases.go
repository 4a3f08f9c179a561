package server

import (
	"context"
	"fmt"
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
	if s.domain, err = openDatabase(ctx, s.config.db); err != nil {
		return err
	}
	if err := makeTables(ctx, s.domain); err != nil {
		return fmt.Errorf("open %s: %w", s.domain.name, err)
	}
	s.records = s.domain
	if s.config.records != s.config.db {
		if s.records, err = openDatabase(ctx, s.config.records); err != nil {
			return err
		}
	}
	if err := s.records.migrate(ctx); err != nil {
		return fmt.Errorf("open %s: %w", s.records.name, err)
	}
	return nil
}

// openDatabase opens the database that a flag named, and sees that it answers.
func openDatabase(ctx context.Context, path string) (*database, error) {
	db, err := openSQLite(path) //nolint:contextcheck // it bounds itself
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := db.Ping(ctx); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open %s: %w", db.name, err)
	}
	return db, nil
}

// startBound is how long others may keep a server that starts from its tables.
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
