package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/migrate"
	"github.com/semelgo/semel/store/sqlite"
)

// openDatabases opens one database or two, and creates their tables.
func (s *app) openDatabases(ctx context.Context) (err error) {
	if s.domain, err = openFile(ctx, s.config.db); err != nil {
		return err
	}
	if err := makeTables(ctx, s.domain); err != nil {
		return fmt.Errorf("open %s: %w", s.config.db, err)
	}
	s.recordsDB = s.domain
	if s.config.records != s.config.db {
		if s.recordsDB, err = openFile(ctx, s.config.records); err != nil {
			return err
		}
	}
	if err := migrate.SQLite(ctx, s.recordsDB); err != nil {
		return fmt.Errorf("open %s: %w", s.config.records, err)
	}
	return nil
}

// startBound is how long others may keep a server that starts from its tables.
const startBound = 30 * time.Second

// makeTables creates what is missing of the chat's own tables, however many
// servers do so at the same time.
func makeTables(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	for {
		err := transaction(db)(ctx, chatdb.MigrateTx)
		if err == nil || !isBusy(err) || ctx.Err() != nil {
			return err
		}
	}
}

// isBusy tells whether somebody else's lock was in the way for as long as the
// database itself waits for it.
func isBusy(err error) bool {
	const busy, primary = 5, 0xff
	e, ok := errors.AsType[interface {
		error
		Code() int
	}](err)
	return ok && e.Code()&primary == busy
}

func openFile(ctx context.Context, path string) (*sql.DB, error) {
	db, err := sqlite.Open(path) //nolint:contextcheck // it bounds itself
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}

func (s *app) closeDatabases() {
	for _, db := range []*sql.DB{s.domain, s.recordsDB} {
		if db != nil {
			_ = db.Close() // twice is fine
		}
	}
}
