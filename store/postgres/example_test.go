package postgres_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store/postgres"
)

// A group is created once, however often it is asked for, because the group and
// the record of its key are committed together.
func Example() {
	err := createGroups(context.Background(), os.Stdout, os.Getenv("DATABASE_URL"))
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
	if err := pgmigrate.Up(ctx, pool, pgmigrate.Options{}); err != nil {
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

// The example says what it should. It has no output of its own to be compared
// with, because it needs a server.
func TestExample(t *testing.T) { //nolint:paralleltest // the example reads the environment and writes to os.Stdout
	t.Setenv("DATABASE_URL", realtest.OwnPostgres(t, "fsync=on", "full_page_writes=on").Database(t))
	read, write, err := os.Pipe()
	check.Require(t, err)
	stdout := os.Stdout
	os.Stdout = write
	Example()
	os.Stdout = stdout
	_ = write.Close()
	got, err := io.ReadAll(read)
	const want = "group 1, replayed false\ngroup 1, replayed true\ngroup 1, replayed true\n"
	if string(got) != want || err != nil {
		t.Errorf("it says\n%s\nwant\n%s (%v)", got, want, err)
	}
}
