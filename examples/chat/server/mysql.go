package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel/examples/chat/chatdb"
	mysqlmigrate "github.com/semelgo/semel/migrate/mysql"
	"github.com/semelgo/semel/store/mysql"
)

func isMySQL(database string) bool { return strings.HasPrefix(database, "mysql://") }

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

// parseMySQL parses mysql://user:password@host:port/database?parameters. The parameters
// are those of the driver. Its errors contain no password.
func parseMySQL(address string) (*driver.Config, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") == "" {
		return nil, errors.New("want mysql://user@host:port/database")
	}
	if u.Port() == "" {
		u.Host += ":3306"
	}
	c, err := driver.ParseDSN("tcp(" + u.Host + ")/" + strings.Trim(u.Path, "/") + "?" + u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	if c.Params == nil {
		c.Params = make(map[string]string)
	}
	return c, nil
}
