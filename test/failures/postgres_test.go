package failures_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/migrate"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/storetest"
)

func TestPostgres(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "postgres")
	url := realtest.Postgres(t).Database(t)
	failureClasses(t, inPostgres(t, url, url))
}

// inPostgres returns a new database at url, which the engine reaches by another
// address; effects are counted directly.
func inPostgres(t testing.TB, url, by string) database[pgx.Tx] {
	t.Helper()
	direct := pool(t, url)
	if err := migrate.Postgres(t.Context(), direct); err != nil {
		t.Fatal(err)
	}
	if _, err := direct.Exec(t.Context(), `create table effects (key text not null)`); err != nil {
		t.Fatal(err)
	}
	s, err := postgres.New(pool(t, by), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return database[pgx.Tx]{
		Subject: storetest.Subject[pgx.Tx]{
			Store: s,
			Effect: func(ctx context.Context, tx pgx.Tx, key string) error {
				_, err := tx.Exec(ctx, `insert into effects (key) values ($1)`, key)
				return err
			},
			Effects: func(key string) (n int) {
				row := direct.QueryRow(context.Background(), `select count(*) from effects where key = $1`, key)
				if err := row.Scan(&n); err != nil {
					t.Errorf("count effects: %v", err)
				}
				return n
			},
		},
		Lease: 2 * time.Second,
	}
}

func pool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}
