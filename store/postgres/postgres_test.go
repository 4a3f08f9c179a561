package postgres_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/semeltest"
	"github.com/semelgo/semel/store/postgres"
)

// Through a proxy that loses replies.
func TestContract(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "postgres")
	url := database(t)
	proxy := realtest.NewProxy(t, realtest.Postgres(t).Addr())
	direct, through := connect(t, url), connect(t, proxy.URL(url))
	semeltest.Run(t, func(t testing.TB) semeltest.Subject[pgx.Tx] {
		s := subject(t, direct, through)
		s.Lose = func() func() bool {
			fault := proxy.EatReply(durable)
			return func() bool { return !fault.Disarm() }
		}
		return s
	})
}

func TestContractBehindPgBouncer(t *testing.T) {
	t.Parallel()
	url := database(t)
	direct, through := connect(t, url), connect(t, realtest.PgBouncer(t, url), mode(pgx.QueryExecModeExec))
	t.Attr("engine", "pgbouncer")
	semeltest.Run(t, func(t testing.TB) semeltest.Subject[pgx.Tx] { return subject(t, direct, through) })
}

// subject empties the tables: the suite needs hundreds of stores, and that is
// quicker than new databases.
func subject(t testing.TB, direct, through *pgxpool.Pool) semeltest.Subject[pgx.Tx] {
	t.Helper()
	mustExec(t, direct, `TRUNCATE semel_records, semel_notes, effects`)
	return semeltest.Subject[pgx.Tx]{
		Store:   newStore(t, through, postgres.Options{}),
		Effect:  func(ctx context.Context, tx pgx.Tx, key string) error { return effect(ctx, tx, key) },
		Effects: func(key string) int { return effects(t, direct, key) },
	}
}

// durable matches a request that, when it is answered, has made something of the
// records durable: a commit, or a write outside a transaction.
func durable(request []byte) bool {
	if realtest.Commit()(request) {
		return true
	}
	writes := bytes.Contains(request, []byte(`INTO semel_`)) || bytes.Contains(request, []byte(`UPDATE semel_`)) ||
		bytes.Contains(request, []byte(`FROM semel_records WHERE id = ANY (ARRAY`))
	return writes && !bytes.Contains(request, []byte(`SAVEPOINT`))
}

// mode sets how a pool's connections send statements.
func mode(m pgx.QueryExecMode) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = m }
}
