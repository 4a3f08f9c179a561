package postgres_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// durableServer returns a server with the settings of a new PostgreSQL.
func durableServer(t *testing.T, settings ...string) *realtest.Server {
	t.Helper()
	on := []string{"fsync=on", "full_page_writes=on", "synchronous_commit=on"}
	return realtest.OwnPostgres(t, append(on, settings...)...)
}

// noStandbys is why the records on one server survive no failover.
const noStandbys = "synchronous_standby_names is empty: no commit waits for a standby"

// wantSurvives requires what the store's records survive, and that the reason is
// these parts in this order.
func wantSurvives(t *testing.T, pool *pgxpool.Pool, want store.Failure, because ...string) {
	t.Helper()
	caps, err := newStore(t, pool, postgres.Options{}).Capabilities(t.Context())
	if want == store.PowerLoss && len(because) == 0 {
		because = []string{noStandbys}
	}
	if err != nil || caps.Survives != want || caps.SurvivesBecause != strings.Join(because, "; ") {
		t.Errorf("Capabilities = %v because of %q, %v, want %v because of %q", caps.Survives, caps.SurvivesBecause, err, want, because)
	}
}

// The role and the database decide about synchronous_commit, also for a connection
// that was opened before ALTER ROLE, also behind a pooler. What the program sets on each connection goes
// before it. The role of the program has no rights but those on the tables.
func TestSettingsOfRoleAndDatabase(t *testing.T) {
	t.Parallel()
	base := migrated(t, durableServer(t))
	owner := connect(t, base)
	mustExec(t, owner, `CREATE ROLE app LOGIN`)
	mustExec(t, owner, `GRANT SELECT, INSERT, UPDATE, DELETE ON semel_records, semel_notes TO app`)
	address := check.Must(url.Parse(base))(t)
	database := pgx.Identifier{strings.TrimPrefix(address.Path, "/")}.Sanitize()
	address.User = url.User("app")
	app := address.String()
	for _, row := range []struct{ place, set, reset string }{
		{"with ALTER ROLE for this role", `ALTER ROLE app SET synchronous_commit = off`, `ALTER ROLE app RESET ALL`},
		{"with ALTER ROLE for this role", `ALTER ROLE app SET Synchronous_Commit = 'False'`, `ALTER ROLE app RESET ALL`},
		{"with ALTER DATABASE for this database", `ALTER DATABASE ` + database + ` SET synchronous_commit = off`, `ALTER DATABASE ` + database + ` RESET ALL`},
		{
			"with ALTER ROLE … IN DATABASE for this role and database",
			`ALTER ROLE app IN DATABASE ` + database + ` SET synchronous_commit = off`, `ALTER ROLE app IN DATABASE ` + database + ` RESET ALL`,
		},
		{"with ALTER ROLE ALL", `ALTER ROLE ALL SET synchronous_commit = off`, `ALTER ROLE ALL RESET ALL`},
	} {
		before := connect(t, app)
		pooled := connect(t, realtest.PgBouncer(t, app), mode(pgx.QueryExecModeExec))
		wantSurvives(t, before, store.PowerLoss)
		wantSurvives(t, pooled, store.PowerLoss)
		mustExec(t, owner, row.set)
		because := "synchronous_commit is off (set " + row.place + ")"
		wantSurvives(t, before, store.NoFailure, because)
		wantSurvives(t, pooled, store.NoFailure, because)
		wantSurvives(t, connect(t, app), store.NoFailure, because)
		wantSurvives(t, connect(t, app, func(c *pgxpool.Config) {
			c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
				_, err := conn.Exec(ctx, `SET synchronous_commit = on`)
				return err
			}
		}), store.PowerLoss)
		mustExec(t, owner, row.reset)
		before.Close()
		pooled.Close()
	}
	// A setting of the role goes before that of the database, and one of another role says nothing.
	mustExec(t, owner, `ALTER DATABASE `+database+` SET synchronous_commit = off`)
	mustExec(t, owner, `ALTER ROLE app SET synchronous_commit = local`)
	mustExec(t, owner, `CREATE ROLE other LOGIN`)
	mustExec(t, owner, `ALTER ROLE other SET synchronous_commit = off`)
	wantSurvives(t, connect(t, app), store.PowerLoss, "synchronous_commit is local (set with ALTER ROLE for this role)")
	wantSurvives(t, connect(t, app, func(c *pgxpool.Config) {
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, `SET synchronous_commit = off`)
			return err
		}
	}), store.NoFailure, "synchronous_commit is off (set with SET on the connection, for example in AfterConnect)")
}

// The error names all settings and tables together, so that an operator can change them
// together. Partitions are among the tables.
func TestUnloggedTablesAndPartitions(t *testing.T) {
	t.Parallel()
	const repair = ": a crash of the server empties it (ALTER TABLE "
	pool := connect(t, migrated(t, durableServer(t)))
	mustExec(t, pool, `ALTER TABLE semel_notes SET UNLOGGED`)
	wantSurvives(t, pool, store.NoFailure, "table semel_notes is unlogged"+repair+"semel_notes SET LOGGED)")
	mustExec(t, pool, `ALTER TABLE semel_notes SET LOGGED`)
	wantSurvives(t, pool, store.PowerLoss)

	mustExec(t, pool, `ALTER TABLE semel_records RENAME TO semel_records_first`)
	mustExec(t, pool, `CREATE TABLE semel_records (LIKE semel_records_first) PARTITION BY RANGE (id)`)
	mustExec(t, pool, `CREATE TABLE semel_records_low PARTITION OF semel_records FOR VALUES FROM (MINVALUE) TO ('80000000-0000-0000-0000-000000000000') PARTITION BY RANGE (id)`)
	mustExec(t, pool, `CREATE TABLE semel_records_high PARTITION OF semel_records FOR VALUES FROM ('80000000-0000-0000-0000-000000000000') TO (MAXVALUE)`)
	wantSurvives(t, pool, store.PowerLoss)
	mustExec(t, pool, `CREATE UNLOGGED TABLE semel_records_lowest PARTITION OF semel_records_low FOR VALUES FROM (MINVALUE) TO ('40000000-0000-0000-0000-000000000000')`)
	lowest := "table semel_records_lowest is unlogged" + repair + "semel_records_lowest SET LOGGED)"
	wantSurvives(t, pool, store.NoFailure, lowest)
	wantSurvives(t, connect(t, pool.Config().ConnString(), func(c *pgxpool.Config) {
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		c.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	}), store.NoFailure, lowest, "synchronous_commit is off (set by the client: the connection string, PGOPTIONS or RuntimeParams)")
}
