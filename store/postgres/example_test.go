package postgres_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/migrate"
	"github.com/semelgo/semel/store/postgres"
)

// A group is created once, however often it is asked for, because the group and
// the record of its key are committed together.
func Example() {
	err := createGroups(context.Background(), os.Stdout, "postgres://localhost/chat?pool_max_conns=20")
	if err != nil {
		fmt.Println(err)
	}
}

func createGroups(ctx context.Context, out io.Writer, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrate.Postgres(ctx, pool); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, `CREATE TABLE groups (id bigint GENERATED ALWAYS AS IDENTITY, name text NOT NULL)`); err != nil {
		return err
	}
	records, err := postgres.New(pool, postgres.Options{})
	if err != nil {
		return err
	}
	engine, err := semel.New(records, semel.Options{})
	if err != nil {
		return err
	}
	createGroup := semel.Define("create_group", semel.OperationOptions[string]{})
	for range 3 {
		call := createGroup.Call(semel.ScopeOf("ann"), "a key of ann's choice", "friends")
		id, replayed, err := semel.DoTx(ctx, engine, call, func(ctx context.Context, tx pgx.Tx) (id int64, err error) {
			err = tx.QueryRow(ctx, `INSERT INTO groups (name) VALUES ($1) RETURNING id`, "friends").Scan(&id)
			return id, err
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "group %d, replayed %v\n", id, replayed)
	}
	return engine.Close(ctx)
}

// The example says what it should.
func TestExample(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := createGroups(t.Context(), &out, realtest.Postgres(t).Database(t)); err != nil {
		t.Fatal(err)
	}
	const want = "group 1, replayed false\ngroup 1, replayed true\ngroup 1, replayed true\n"
	if out.String() != want {
		t.Errorf("it says\n%s\nwant\n%s", out.String(), want)
	}
}
