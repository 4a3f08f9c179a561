package server

import (
	"context"
	"errors"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/migrate"
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
		store:   records(sqlite.New(db), chatdb.OnSQLite),
		migrate: func(ctx context.Context) error { return migrate.SQLite(ctx, db) },
	}, nil
}

// isBusy reports whether SQLite gave up waiting for another connection's lock.
func isBusy(err error) bool {
	const busy, primary = 5, 0xff
	e, ok := errors.AsType[interface {
		error
		Code() int
	}](err)
	return ok && e.Code()&primary == busy
}
