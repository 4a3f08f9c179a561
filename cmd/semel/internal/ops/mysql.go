package ops

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	mysqlmigrate "github.com/semelgo/semel/migrate/mysql"
	"github.com/semelgo/semel/store/mysql"
)

// openMySQL connects to the server at mysql://user:password@host:port/database, with the
// driver's parameters.
func openMySQL(ctx context.Context, at dbName) (*database, error) {
	if at.schema != "" {
		return nil, exit.Usagef("--%s: MariaDB has no schemas within a database", flagSchema)
	}
	config, err := mysqlConfig(at.db)
	if err != nil {
		return nil, exit.Usagef("--%s: %w", flagDB, singleLineError{err})
	}
	config.Logger = &driver.NopLogger{} // each error is reported once
	db, err := mysql.OpenConfig(config)
	if err != nil {
		return nil, exit.Usagef("--%s: %w", flagDB, singleLineError{err})
	}
	reached, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	s, err := mysql.New(db, mysql.Options{Prefix: at.prefix})
	if err == nil {
		err = db.PingContext(reached)
	}
	if err != nil {
		_ = db.Close() // err is the cause
		return nil, withCode(err)
	}
	return &database{
		name:   fmt.Sprintf("mysql://%s/%s", config.Addr, config.DBName),
		system: "mariadb", records: s, outbox: s.Outbox(), engine: transactional(s), noting: notingEngine(s), readSalt: s.Salt, //nolint:contextcheck // semel.NewRunner bounds its one question itself
		migrate: func(ctx context.Context) error {
			return mysqlmigrate.Up(ctx, db, mysqlmigrate.Options{Prefix: at.prefix})
		},
		close: func() { _ = db.Close() }, // every result was committed or reported before
	}, nil
}

// mysqlConfig returns the driver's configuration for an address. Its errors do not
// contain the password.
func mysqlConfig(address string) (*driver.Config, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil, errors.New("the address is not mysql://user:password@host:port/database")
	}
	port := u.Port()
	if port == "" {
		port = "3306"
	}
	name := fmt.Sprintf("tcp(%s)/%s", net.JoinHostPort(u.Hostname(), port), url.PathEscape(strings.TrimPrefix(u.Path, "/")))
	if u.RawQuery != "" {
		name += "?" + u.RawQuery
	}
	config, err := driver.ParseDSN(name)
	if err != nil {
		return nil, err
	}
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	return config, nil
}
