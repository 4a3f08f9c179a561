package mysql_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/testchange"
	migrate "github.com/semelgo/semel/migrate/mysql"
	"github.com/semelgo/semel/store"
)

// TestPrivileges: the program and the reader need the privileges that docs/migrations.md
// grants, and no others.
func TestPrivileges(t *testing.T) {
	t.Parallel()
	source := database(t)
	admin := connect(t, source)
	names := check.Must(driver.ParseDSN(source))(t)
	prefix := "u" + strings.ToLower(rand.Text()[:8]) + "_"
	for _, statement := range grants(t, names.DBName, prefix) {
		mustExec(t, admin, statement)
	}
	as := func(user string) *sql.DB {
		config := names.Clone()
		config.User, config.Passwd = prefix+user, "a password"
		t.Cleanup(func() {
			_, err := admin.ExecContext(context.WithoutCancel(t.Context()), "DROP USER "+prefix+user)
			check.NoError(t, err, "drop a user")
		})
		return connect(t, config.FormatDSN())
	}
	app, reader := as("app"), as("reader")
	check.NoError(t, migrate.Up(t.Context(), app, migrate.Options{}), "Up by the program, when all migrations have run")
	check.NoError(t, useStore(t, app, "granted"), "the program")
	check.NoError(t, readStore(t, reader), "the reader")
	check.Equal(t, denied(useStore(t, reader, "reader")), true, "a write by the reader is denied")
	for table, rights := range map[string][]string{
		"semel_records": {"SELECT", "INSERT", "UPDATE", "DELETE"}, "semel_guard": {"SELECT", "INSERT", "UPDATE", "DELETE"}, "semel_notes": {"SELECT", "INSERT", "UPDATE"},
	} {
		for _, right := range rights {
			of := fmt.Sprintf("%s ON %s.%s", right, names.DBName, table)
			mustExec(t, admin, fmt.Sprintf("REVOKE %s FROM %sapp", of, prefix))
			if err := useStore(t, app, of); !denied(err) {
				t.Errorf("the program without %s: %v, want that it is denied", of, err)
			}
			mustExec(t, admin, fmt.Sprintf("GRANT %s TO %sapp", of, prefix))
		}
	}
}

// grants returns the statements of docs/migrations.md about MariaDB, for a database and for
// users whose names begin with prefix.
func grants(t *testing.T, database, prefix string) (statements []string) {
	t.Helper()
	page := check.Must(os.ReadFile("../../docs/migrations.md"))(t)
	_, section, _ := strings.Cut(string(page), "## Privileges on MariaDB")
	_, block, _ := strings.Cut(section, "```sql\n")
	block, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("docs/migrations.md has no statements about MariaDB")
	}
	for _, user := range []string{"app", "reader"} {
		block = strings.ReplaceAll(block, "semel_"+user, prefix+user)
	}
	for statement := range strings.SplitSeq(strings.ReplaceAll(block, "shop.", database+"."), ";") {
		if statement = strings.TrimSpace(statement); statement != "" {
			statements = append(statements, statement)
		}
	}
	return statements
}

// denied reports whether a command, or a column, was denied for lack of a privilege.
func denied(err error) bool {
	e, ok := errtype.Find[*driver.MySQLError](err)
	return ok && (e.Number == 1142 || e.Number == 1143)
}

// useStore makes each kind of call that a program makes, and returns their errors.
func useStore(t *testing.T, db *sql.DB, key string) error {
	t.Helper()
	s, inline := newStore(t, db), create(key+" inline", store.Succeeded, 3)
	_, inTx := s.Atomic(t.Context(), inline.To.ID, true, nothing(&inline))
	return errors.Join(inTx, testchange.UseAll(t.Context(), s, key))
}

// readStore reads what the program semel and dashboards read.
func readStore(t *testing.T, db *sql.DB) error {
	t.Helper()
	s := newStore(t, db)
	_, salted := s.Salt(t.Context())
	_, viewed := db.ExecContext(t.Context(), `SELECT count(*) FROM semel_record_view`)
	return errors.Join(salted, viewed, testchange.ReadAll(t.Context(), s))
}
