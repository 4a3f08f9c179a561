package onetime_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/plainstore/servers"
	"github.com/semelgo/semel/onetime"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/mysql"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/sqlite"
)

// childVariable tells the test binary to run as a child process, with its configuration.
const childVariable = "SEMEL_ONETIME_CHILD"

// The policies of a child. Its database has one transaction for inOneTx.
const (
	inOneTx     = "ConsumeTx"
	hold        = "Consume, Hold"
	atLeastOnce = "Consume, AtLeastOnce"
)

// The points at which a child is killed.
const (
	before = "before the effect"
	after  = "after the effect"
)

// child is a process that uses one token, and kills itself in the handler.
type child struct {
	Driver, Address string
	Records         servers.Place // of a store without transactions; empty: the database
	Policy          string
	Token           string
	KillAt          string // a point; empty: none
}

func runChild(text string) int {
	var c child
	err := json.Unmarshal([]byte(text), &c)
	if err == nil {
		var db *database
		if db, err = c.open(); err == nil {
			_, _, err = db.use(context.Background(), c.Token, c.KillAt)
		}
	}
	fmt.Fprintln(os.Stderr, "the child was not killed:", err)
	return 1
}

// database is an engine over a real database, with a table of effects.
type database struct {
	*sql.DB
	end     func() error // closes other connections
	engine  semel.Runner
	purpose *onetime.Purpose[order]
	insert  string
	// useTx uses a token in a transaction.
	useTx func(ctx context.Context, token, killAt string) (string, bool, error)
}

// open opens the child's database.
func (c child) open() (*database, error) {
	switch c.Driver {
	case "sqlite":
		db, err := sqlite.Open(c.Address)
		if err != nil {
			return nil, err
		}
		if c.Records.Engine == "" {
			return connect(c, db, sqlite.New(db, sqlite.Options{}), insertSQL(`INSERT INTO spent VALUES (?)`))
		}
		s, end, err := c.Records.Open()
		if err != nil {
			return nil, err
		}
		d := newDatabase(c, db)
		d.end = end
		d.engine, err = semel.NewRunner(s, d.options())
		return d, err
	case "mariadb":
		db, err := mysql.Open(c.Address)
		if err != nil {
			return nil, err
		}
		s, err := mysql.New(db, mysql.Options{})
		if err != nil {
			return nil, err
		}
		return connect(c, db, s, insertSQL(`INSERT INTO spent VALUES (?)`))
	}
	db, err := sql.Open("pgx", c.Address)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	if c.Driver == "pgx" {
		s, err := postgres.NewSQL(db, postgres.Options{})
		if err != nil {
			return nil, err
		}
		return connect(c, db, s, insertSQL(`INSERT INTO spent VALUES ($1)`))
	}
	pool, err := pgxpool.New(context.Background(), c.Address)
	if err != nil {
		return nil, err
	}
	s, err := postgres.New(pool, postgres.Options{})
	if err != nil {
		return nil, err
	}
	d, err := connect(c, db, s, func(ctx context.Context, tx pgx.Tx, name string) error {
		_, err := tx.Exec(ctx, `INSERT INTO spent VALUES ($1)`, name)
		return err
	})
	if err == nil {
		d.end = func() error { pool.Close(); return nil }
	}
	return d, err
}

// Close closes the connections.
func (d *database) Close() error {
	return errors.Join(d.end(), d.DB.Close())
}

func insertSQL(statement string) func(context.Context, *sql.Tx, string) error {
	return func(ctx context.Context, tx *sql.Tx, name string) error {
		_, err := tx.ExecContext(ctx, statement, name)
		return err
	}
}

// newDatabase returns a database without an engine.
func newDatabase(c child, db *sql.DB) *database {
	o := onetime.Options{Lease: time.Hour, Wait: time.Minute}
	if c.KillAt != "" { // its lease is to expire
		o.Lease = time.Second
	}
	switch c.Policy {
	case hold:
		o.Policy = semel.Hold()
	case atLeastOnce:
		o.Policy = semel.AtLeastOnce()
	default:
		o.Lease = 0
	}
	d := &database{
		DB: db, purpose: onetime.Define[order]("place_order", o), insert: `INSERT INTO spent VALUES (?)`,
		end: func() error { return nil },
	}
	if c.Driver == "pgx" || c.Driver == "postgres" {
		d.insert = `INSERT INTO spent VALUES ($1)`
	}
	return d
}

func (d *database) options() semel.Options {
	return semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{d.purpose.Operation()}}
}

func connect[Tx any](c child, db *sql.DB, s store.TxStore[Tx], insert func(context.Context, Tx, string) error) (*database, error) {
	d := newDatabase(c, db)
	e, err := semel.New(s, d.options())
	if err != nil {
		return nil, err
	}
	d.engine = e
	if c.Policy == inOneTx {
		d.useTx = func(ctx context.Context, token, killAt string) (string, bool, error) {
			return onetime.ConsumeTx(ctx, d.purpose, e, subject, token, func(ctx context.Context, tx Tx, o order) (string, error) {
				kill(killAt, before)
				if err := insert(ctx, tx, o.Name); err != nil {
					return "", err
				}
				kill(killAt, after)
				return "placed", nil
			})
		}
	}
	return d, nil
}

var subject = semel.ScopeOf("ann")

// use uses a token as the child's policy says, with an effect in the table.
func (d *database) use(ctx context.Context, token, killAt string) (string, bool, error) {
	if d.useTx != nil {
		return d.useTx(ctx, token, killAt)
	}
	return onetime.Consume(ctx, d.purpose, d.engine, subject, token, func(ctx context.Context, o order) (string, error) {
		kill(killAt, before)
		// The effect comes, even if a slow machine has lost the lease, so that the child is killed after it.
		if _, err := d.ExecContext(context.WithoutCancel(ctx), d.insert, o.Name); err != nil {
			return "", err
		}
		kill(killAt, after)
		return "placed", nil
	})
}

// kill kills this process, as kill -9 does, if it has reached its point.
func kill(at, reached string) {
	if at != reached {
		return
	}
	self, err := os.FindProcess(os.Getpid())
	if err = errors.Join(err, self.Kill()); err != nil {
		panic(err)
	}
	select {}
}
