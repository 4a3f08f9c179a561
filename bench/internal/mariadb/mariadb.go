// Package mariadb measures Semel on MariaDB against hand-written SQL, with the same driver
// on the same server (innodb_flush_log_at_trx_commit=1).
package mariadb

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/payment"
	"github.com/semelgo/semel/bench/internal/usage"
	"github.com/semelgo/semel/internal/realtest"
	migrate "github.com/semelgo/semel/migrate/mysql"
	"github.com/semelgo/semel/store/mysql"
)

// callers is the number of callers at the same time.
const callers = 64

// Experiments returns the experiments on MariaDB.
func Experiments() []lab.Experiment {
	naive := goal.AtLeast("MariaDB, throughput of Do at 64 callers, against two plain statements", "x", 2.8, 3.3)
	bare := goal.Shown("MariaDB, throughput of Do at 64 callers, against one bare insert", "x")
	run := func(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
		db, server, sides, err := open(ctx, l)
		if err != nil {
			return nil, err
		}
		fresh := func(ctx context.Context, _ string) error {
			for _, table := range []string{"naive", "semel_records"} {
				if _, err := db.ExecContext(ctx, "TRUNCATE TABLE "+table); err != nil {
					return fmt.Errorf("empty %s: %w", table, err)
				}
			}
			return nil
		}
		c := contest.Contest{Name: "mariadb, callers: 64", Callers: callers, Sides: sides, Server: server, Before: fresh}
		o, err := c.Run(ctx, l)
		if err != nil {
			return nil, err
		}
		return []goal.Finding{o.Faster(naive, "Do", "naive"), o.Faster(bare, "Do", "bare")}, nil
	}
	return []lab.Experiment{{Name: "mariadb", Rows: []goal.Row{naive, bare}, Run: run}}
}

// open starts a server and returns its database, its processor time and the sides.
func open(ctx context.Context, l *lab.Lab) (*sql.DB, usage.Server, []contest.Side, error) {
	server, err := realtest.StartDurableMariaDB(ctx,
		"innodb-buffer-pool-size=512M", "innodb-log-file-size=1G", "max-connections=400")
	if err != nil {
		return nil, nil, nil, err
	}
	l.Closing(server.Close)
	address, err := url.Parse(server.URL())
	if err != nil {
		return nil, nil, nil, fmt.Errorf("parse address: %w", err)
	}
	if err := createDatabase(ctx, address.Host); err != nil {
		return nil, nil, nil, err
	}
	db, err := mysql.Open("root@tcp(" + address.Host + ")/bench")
	if err != nil {
		return nil, nil, nil, err
	}
	l.Closing(db.Close)
	db.SetMaxOpenConns(callers)
	db.SetMaxIdleConns(callers)
	if _, err := db.ExecContext(ctx, plainSchema); err != nil {
		return nil, nil, nil, fmt.Errorf("make the table: %w", err)
	}
	if err := migrate.Up(ctx, db, migrate.Options{}); err != nil {
		return nil, nil, nil, fmt.Errorf("make the tables: %w", err)
	}
	s, err := mysql.New(db, mysql.Options{})
	if err != nil {
		return nil, nil, nil, err
	}
	engine, err := semel.New(s, semel.Options{})
	if err != nil {
		return nil, nil, nil, err
	}
	l.Closing(func() error { return engine.Close(context.Background()) })
	return db, usage.Tree(server.PID()), []contest.Side{
		{Name: "naive", Do: naive(db)},
		{Name: "bare", Do: bare(db)},
		{Name: "Do", Do: payment.Do(engine)},
	}, nil
}

func createDatabase(ctx context.Context, host string) error {
	db, err := mysql.Open("root@tcp(" + host + ")/mysql")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE DATABASE bench"); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return nil
}
