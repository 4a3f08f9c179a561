package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/internal/testchange"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// database returns the address of a new database with the schema and a table of
// effects.
func database(t testing.TB) string {
	t.Helper()
	return migrated(t, realtest.Postgres(t))
}

// migrated returns the address of a new database of the server, with the same tables.
func migrated(t testing.TB, server *realtest.Server) string {
	t.Helper()
	url := server.Database(t)
	pool := connect(t, url)
	check.Require(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}), "migrate")
	mustExec(t, pool, `CREATE TABLE effects (key text NOT NULL)`)
	return url
}

// connect returns a pool that is closed in the end.
func connect(t testing.TB, url string, change ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	check.Require(t, err, "parse %q", url)
	config.MaxConns = 20
	for _, c := range change {
		c(config)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	check.Require(t, err, "connect")
	t.Cleanup(pool.Close)
	return pool
}

// open returns a store with a new database, and its pool.
func open(t testing.TB, o postgres.Options, change ...func(*pgxpool.Config)) (*postgres.Store, *pgxpool.Pool) {
	t.Helper()
	pool := connect(t, database(t), change...)
	return newStore(t, pool, o), pool
}

// newStore returns a store of its own.
func newStore(t testing.TB, pool *pgxpool.Pool, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.New(pool, o)
	check.Require(t, err, "New")
	t.Cleanup(s.CloseSessions)
	return s
}

// execer is a pool, a connection or a transaction.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func mustExec(t testing.TB, e execer, sql string, args ...any) {
	t.Helper()
	if _, err := e.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// effect inserts one more effect of key.
func effect(ctx context.Context, tx pgx.Tx, key string) error {
	_, err := tx.Exec(ctx, `INSERT INTO effects (key) VALUES ($1)`, key)
	return err
}

// effects counts the committed effects of key.
func effects(t testing.TB, pool *pgxpool.Pool, key string) int {
	t.Helper()
	return one[int](t, pool, `SELECT count(*) FROM effects WHERE key = $1`, key)
}

// one reads one value.
func one[T any](t testing.TB, pool *pgxpool.Pool, sql string, args ...any) T {
	t.Helper()
	rows, err := pool.Query(context.WithoutCancel(t.Context()), sql, args...)
	check.Require(t, err, "%s", sql)
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	check.Require(t, err, "%s", sql)
	return value
}

var errHandler = errors.New("the handler's error")

// inTx runs a transaction with the right to the record.
func inTx(t *testing.T, s *postgres.Store, id store.ID, run func(ctx context.Context, tx pgx.Tx) (*store.Change, error)) (store.Verdict, error) {
	t.Helper()
	return s.Atomic(t.Context(), id, true, func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
		return run(ctx, tx)
	})
}

// whenFree is inTx as soon as no other transaction has the right to the record.
func whenFree(t *testing.T, s *postgres.Store, id store.ID, run func(ctx context.Context, tx pgx.Tx) (*store.Change, error)) (verdict store.Verdict, err error) {
	t.Helper()
	for busy := true; busy; {
		verdict, err = s.Atomic(t.Context(), id, true, func(ctx context.Context, tx pgx.Tx, found store.SwapResult) (*store.Change, error) {
			if busy = found.Busy; busy {
				return nil, errHandler
			}
			return run(ctx, tx)
		})
	}
	return verdict, err
}

// finish runs a transaction that has one effect of key and ends with last.
func finish(t *testing.T, s *postgres.Store, key string, last *store.Change) (store.Verdict, error) {
	t.Helper()
	return inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
		if err := effect(ctx, tx, key); err != nil {
			return nil, err // with last it would be a failure to keep
		}
		return last, nil
	})
}

// mustBeFree requires that a transaction has left no record and no lock, at the latest when
// the server knows that its connection is lost.
func mustBeFree(t *testing.T, s *postgres.Store, last store.Change) {
	t.Helper()
	check.Equal(t, current(t, s, last), store.Token{}, "the current record")
	verdict, err := whenFree(t, s, last.To.ID, func(context.Context, pgx.Tx) (*store.Change, error) { return nil, errHandler })
	check.ResultIs(verdict, err)(t, store.NotCommitted, errHandler, "the next Atomic")
}

// settled makes the change c as soon as no open transaction holds its record, and returns
// the token of the current record.
func settled(t *testing.T, s *postgres.Store, c store.Change) store.Token {
	t.Helper()
	for {
		answers := check.Must(s.Swap(t.Context(), []store.Change{c}))(t)
		if !answers[0].Busy {
			return answers[0].Token
		}
	}
}

// do runs statements by the simple protocol, which sends several at once.
func do(ctx context.Context, tx pgx.Tx, sql string) error {
	_, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	return err
}

const anEffect = `INSERT INTO effects VALUES ('key')`

// statements is a batch without callbacks.
func statements(texts ...string) *pgx.Batch {
	b := &pgx.Batch{}
	for _, s := range texts {
		b.Queue(s)
	}
	return b
}

// rig is a database, and a store whose connections can be broken.
type rig struct {
	direct *pgxpool.Pool
	proxy  *realtest.Proxy
	store  *postgres.Store
}

// breaking returns a rig whose store runs one transaction at a time: a lost connection that
// is not given back blocks the next one.
func breaking(t *testing.T, change ...func(*pgxpool.Config)) rig {
	t.Helper()
	url := database(t)
	proxy := realtest.NewProxy(t, realtest.Postgres(t).Addr())
	return rig{connect(t, url), proxy, newStore(t, connect(t, proxy.URL(url), append(change, atMost(2))...), postgres.Options{})}
}

// atMost limits the connections of a pool.
func atMost(conns int32) func(*pgxpool.Config) { return func(c *pgxpool.Config) { c.MaxConns = conns } }

// mode sets how a pool's connections send statements.
func mode(m pgx.QueryExecMode) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = m }
}

// queryModes are all ways in which the driver sends statements.
func queryModes() []pgx.QueryExecMode {
	return []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	}
}

// tracer reports each batch and each single statement that a connection sends.
type tracer struct {
	batch func()
	query func(sql string)
}

func traced(r tracer) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.ConnConfig.Tracer = r }
}

func (r tracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	if r.batch != nil {
		r.batch()
	}
	return ctx
}

func (r tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if r.query != nil {
		r.query(data.SQL)
	}
	return ctx
}

func (tracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (tracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}
func (tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)     {}

// until waits for a query to count something.
func until(t *testing.T, pool *pgxpool.Pool, counts string) {
	t.Helper()
	realtest.Poll(t, counts, func() bool { return one[int](t, pool, counts) > 0 })
}

// untilLocked waits until a session of the pool's database waits for a lock of that type.
func untilLocked(t *testing.T, pool *pgxpool.Pool, of string) {
	t.Helper()
	until(t, pool, `SELECT count(*) FROM pg_locks WHERE locktype = '`+of+`' AND NOT granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
}

// The changes that the tests make.
var (
	create    = testchange.Create
	move      = testchange.Move
	current   = testchange.Current
	mustForce = testchange.Apply
)
