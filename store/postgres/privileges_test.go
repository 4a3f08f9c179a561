package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/internal/testchange"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store/postgres"
)

// privilegeBlocks returns the two blocks of docs/migrations.md that create the roles and
// grant their privileges, for roles whose names begin with prefix.
func privilegeBlocks(t *testing.T, prefix string) (create, grant string) {
	t.Helper()
	page := check.Must(os.ReadFile("../../docs/migrations.md"))(t)
	section, _, _ := strings.Cut(string(page), "## Privileges on MariaDB")
	var blocks []string
	for _, rest := range strings.Split(section, "```sql\n")[1:] {
		block, _, _ := strings.Cut(rest, "```")
		for _, role := range []string{"migrator", "app", "reader"} {
			block = strings.ReplaceAll(block, "semel_"+role, prefix+role)
		}
		blocks = append(blocks, block)
	}
	if len(blocks) != 2 {
		t.Fatalf("docs/migrations.md has %d blocks of SQL, want those that create roles and that grant", len(blocks))
	}
	return blocks[0], blocks[1]
}

// TestPrivileges: the migrator, the program and the reader need the privileges that
// docs/migrations.md grants, and no others.
func TestPrivileges(t *testing.T) {
	t.Parallel()
	url := realtest.Postgres(t).Database(t)
	admin := connect(t, url)
	prefix := one[string](t, admin, `SELECT current_database()::text`) + "_"
	create, grant := privilegeBlocks(t, prefix)
	mustExec(t, admin, create)
	as := func(role string) *pgxpool.Pool {
		return connect(t, url, func(c *pgxpool.Config) {
			c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
				_, err := conn.Exec(ctx, `SET ROLE `+prefix+role)
				return err
			}
		})
	}
	migrator, app, reader := as("migrator"), as("app"), as("reader")
	names := pgmigrate.Options{Schema: "semel"}
	check.Require(t, pgmigrate.Up(t.Context(), migrator, names))
	mustExec(t, migrator, grant)
	check.NoError(t, pgmigrate.Up(t.Context(), app, names), "Up by the program, when all migrations have run")
	check.NoError(t, useStore(t, app, "granted"), "the program")
	check.NoError(t, readStore(t, reader), "the reader")
	if err := useStore(t, reader, "reader"); postgres.CodeOf(err) != "42501" {
		t.Errorf("a write by the reader = %v, want that the role may not", err)
	}
	for _, p := range []string{
		"SELECT ON semel.semel_records", "INSERT ON semel.semel_records", "UPDATE ON semel.semel_records",
		"DELETE ON semel.semel_records", "SELECT ON semel.semel_notes", "INSERT ON semel.semel_notes", "USAGE ON SCHEMA semel",
	} {
		mustExec(t, migrator, fmt.Sprintf(`REVOKE %s FROM %sapp`, p, prefix))
		if err := useStore(t, app, p); postgres.CodeOf(err) != "42501" {
			t.Errorf("the program without %s: %v, want that the role may not", p, err)
		}
		mustExec(t, migrator, fmt.Sprintf(`GRANT %s TO %sapp`, p, prefix))
	}
}

// useStore makes each kind of call that a program makes, and returns their errors.
func useStore(t *testing.T, pool *pgxpool.Pool, key string) error {
	t.Helper()
	return testchange.UseAll(t.Context(), newStore(t, pool, postgres.Options{Schema: "semel"}), key)
}

// readStore reads what the program semel and dashboards read.
func readStore(t *testing.T, pool *pgxpool.Pool) error {
	t.Helper()
	s := newStore(t, pool, postgres.Options{Schema: "semel"})
	_, salted := s.Salt(t.Context())
	_, viewed := pool.Exec(t.Context(), `SELECT FROM semel.semel_record_view`)
	return errors.Join(salted, viewed, testchange.ReadAll(t.Context(), s))
}
