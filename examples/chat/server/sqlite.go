package server

import (
	"context"

	"github.com/semelgo/semel/examples/chat/chatdb"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store/sqlite"
)

// openSQLite opens a database file.
func openSQLite(path string, _ config) (*database, error) {
	db, err := sqlite.Open(path)
	if err != nil {
		return nil, err
	}
	return &database{
		DB: chatdb.SQLite(db), name: path,
		store:   records(sqlite.New(db, sqlite.Options{}), chatdb.OnSQLite),
		migrate: func(ctx context.Context) error { return sqlitemigrate.Up(ctx, db, sqlitemigrate.Options{}) },
	}, nil
}
