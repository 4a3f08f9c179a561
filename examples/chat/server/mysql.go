package server

import (
	"context"
	"fmt"
	"time"

	"github.com/semelgo/semel/examples/chat/chatdb"
	mysqlmigrate "github.com/semelgo/semel/migrate/mysql"
	"github.com/semelgo/semel/store/mysql"
)

// openMySQL opens a MariaDB database. It connects at the first use.
func openMySQL(address string, c config) (*database, error) {
	settings, err := parseMySQL(address)
	if err != nil {
		return nil, err
	}
	if c.mode == modeInline {
		// An inline leader holds its key as long as its transaction is open, so the server
		// ends a transaction that is idle for a lease, in whole seconds. A leased attempt
		// needs no such limit.
		seconds := (c.lease + time.Second - 1) / time.Second
		settings.Params["idle_transaction_timeout"] = fmt.Sprint(int64(seconds))
	}
	db, err := mysql.OpenConfig(settings)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	s, err := mysql.New(db, mysql.Options{})
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return &database{
		DB: chatdb.MySQL(db), name: shown(address),
		store:   records(s, chatdb.OnMySQL),
		migrate: func(ctx context.Context) error { return mysqlmigrate.Up(ctx, db, mysqlmigrate.Options{}) },
	}, nil
}
