package server

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/migrate"
	"github.com/semelgo/semel/store/sqlite"
)

// openDatabases opens one database or two, and creates their tables.
func (s *app) openDatabases(ctx context.Context) (err error) {
	if s.domain, err = openFile(ctx, s.config.db); err != nil {
		return err
	}
	err = transaction(s.domain)(ctx, chatdb.MigrateTx)
	if err != nil {
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

func openFile(ctx context.Context, path string) (*sql.DB, error) {
	db, err := sqlite.Open(path)
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
