package growth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/payment"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

var errTooLong = errors.New("it takes too long for a quick run")

// timed is an operation whose keys have a time.
var timed = semel.Define("create_payment", semel.OperationOptions[payment.Request]{KeyTime: semel.UUIDv7Time})

// database is a database with Semel's tables, and an engine.
type database struct {
	server *lab.Server
	pool   *pgxpool.Pool
	store  *postgres.Store
	engine *semel.Engine[pgx.Tx]
}

func newDatabase(ctx context.Context, l *lab.Lab, name string) (*database, error) {
	server, err := l.Postgres(ctx)
	if err != nil {
		return nil, err
	}
	pool, err := server.Pool(ctx, l, name, 16)
	if err != nil {
		return nil, err
	}
	d, err := openDatabase(ctx, pool)
	if err != nil {
		return nil, err
	}
	d.server = server
	l.Closing(func() error {
		return errors.Join(d.engine.Close(context.Background()), d.exec(context.Background(), "truncate semel_records"))
	})
	return d, nil
}

func openDatabase(ctx context.Context, pool *pgxpool.Pool) (d *database, err error) {
	if err := pgmigrate.Up(ctx, pool, pgmigrate.Options{}); err != nil {
		return nil, fmt.Errorf("make the tables: %w", err)
	}
	d = &database{pool: pool}
	if d.store, err = postgres.New(pool, postgres.Options{}); err != nil {
		return nil, err
	}
	d.engine, err = semel.New(d.store, semel.Options{Survive: store.ProcessEnd})
	return d, err
}

func (d *database) exec(ctx context.Context, statements ...string) error {
	for _, sql := range statements {
		if _, err := d.pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// table is a table of n records.
type table struct {
	*database

	name    string
	records int
	ordered bool
	do      func(context.Context, *contest.Caller) error
}

func tableName(records int, ordered bool) string {
	if ordered {
		return fmt.Sprintf("%d in order", records)
	}
	return fmt.Sprintf("%d", records)
}

// newTable creates and fills a table.
func newTable(ctx context.Context, l *lab.Lab, records int, ordered bool) (*table, error) {
	d, err := newDatabase(ctx, l, "growth "+tableName(records, ordered))
	if err != nil {
		return nil, err
	}
	t := d.table(records, ordered)
	began := time.Now()
	if err := t.fill(ctx, records); err != nil {
		return nil, fmt.Errorf("fill a table of %d: %w", records, err)
	}
	l.Logf("filled a table: %s, in %.1f s", t.name, time.Since(began).Seconds())
	return t, nil
}

func (d *database) table(records int, ordered bool) *table {
	t := &table{database: d, name: tableName(records, ordered), records: records, ordered: ordered, do: payment.Do(d.engine)}
	if ordered {
		t.do = t.doTimed
	}
	return t
}

// doTimed is payment.Do with keys that begin with the time.
func (t *table) doTimed(ctx context.Context, c *contest.Caller) error {
	call := timed.Call(semel.ScopeOf(payment.Scope(c.N)), timeKey(c), payment.Request{Amount: 4711, Currency: "EUR"})
	_, _, err := semel.Do(ctx, t.engine, call, func(context.Context) (semel.Raw, error) { return payment.Result(), nil })
	return err
}

// timeKey replaces the beginning of a random UUID by the time, so that it is a UUID
// version 7.
func timeKey(c *contest.Caller) string {
	key := []byte(c.Key())
	ms := fmt.Sprintf("%012x", time.Now().UnixMilli())
	copy(key, ms[:8])
	copy(key[9:], ms[8:])
	key[14] = '7'
	return string(key)
}

// shrink makes a small table small again. Added records do not matter in a large
// one.
func (t *table) shrink(ctx context.Context) error {
	if t.records > small {
		return nil
	}
	return t.fill(ctx, t.records)
}
