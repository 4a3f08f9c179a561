package ops

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/sqlname"
	"github.com/semelgo/semel/store/mysql"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/sqlite"
)

const (
	flagDB     = "db"
	flagSchema = "schema"
	flagPrefix = "prefix"
	envDB      = "SEMEL_DB"
)

// dbName names a database and the tables in it.
type dbName struct{ db, schema, prefix string }

// addDB adds the flags that name the database and its tables to c. The environment variable is
// read when the command runs, so that help does not print its value.
func addDB(c *cobra.Command) {
	c.Flags().String(flagDB, "", "the database: sqlite:PATH, postgres://… or mysql://… (default $"+envDB+")")
	c.Flags().String(flagSchema, "", "the schema of the tables in PostgreSQL (default: found by the search_path)")
	c.Flags().String(flagPrefix, "", "the beginning of the tables' names (default semel_)")
	complete(c, flagDB, []cobra.Completion{"sqlite:", "postgres://", "mysql://"}, cobra.ShellCompDirectiveNoSpace)
}

// dbOf returns the names of the database and of its tables.
func dbOf(c *cobra.Command) (dbName, error) {
	var a dbName
	for _, f := range []struct {
		name string
		to   *string
	}{{flagDB, &a.db}, {flagSchema, &a.schema}, {flagPrefix, &a.prefix}} {
		var err error
		if *f.to, err = c.Flags().GetString(f.name); err != nil {
			return a, err
		}
	}
	if a.db == "" {
		a.db = os.Getenv(envDB)
	}
	if a.db == "" {
		return a, exit.Usagef("--%s is required, or $%s", flagDB, envDB)
	}
	if err := sqlname.CheckSchema("--"+flagSchema, a.schema); err != nil {
		return a, exit.Usagef("%w", err)
	}
	var err error
	if a.prefix, err = sqlname.Prefix("--"+flagPrefix, a.prefix); err != nil {
		return a, exit.Usagef("%w", err)
	}
	return a, nil
}

// withDB runs fn with the database that c names. The database and its tables
// must exist. An error of the database ends the program with exit.Unavailable.
func withDB(c *cobra.Command, fn func(ctx context.Context, db *database) error) error {
	at, err := dbOf(c)
	if err != nil {
		return err
	}
	db, err := open(c.Context(), at, mustExist)
	if err != nil {
		return err
	}
	defer db.close()
	return withCode(fn(c.Context(), db))
}

// withCode adds an exit code to err, unless it has one.
func withCode(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*exit.Error](err); ok {
		return err
	}
	code := exit.Unavailable
	if _, refused := errors.AsType[*semel.FieldError](err); refused || errors.Is(err, context.Canceled) {
		code = exit.Failed
	}
	if errors.Is(err, postgres.ErrNotDivided) {
		return errNotDivided()
	}
	if errors.Is(err, sqlite.ErrNoSchema) || errors.Is(err, postgres.ErrNoSchema) || errors.Is(err, mysql.ErrNoSchema) {
		return errNoTables()
	}
	return &exit.Error{Code: code, Err: singleLineError{err}}
}

// singleLineError prints an error on one line, even if it joins several errors.
type singleLineError struct{ err error }

func (e singleLineError) Error() string { return strings.Join(strings.Fields(e.err.Error()), " ") }
func (e singleLineError) Unwrap() error { return e.err }

func errNoTables() error {
	return &exit.Error{Code: exit.Failed, Err: errors.New("the database lacks tables of Semel; semel migrate creates them")}
}

// group makes c a command that only contains other commands.
func group(c *cobra.Command, below ...*cobra.Command) *cobra.Command {
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.AddCommand(below...)
	return c
}

// withRecords is withDB for the commands that print records. It reads the salt
// before fn changes anything; otherwise an error could be reported although the
// change was made.
func withRecords(c *cobra.Command, fn func(ctx context.Context, db *database) error) error {
	return withDB(c, func(ctx context.Context, db *database) (err error) {
		if db.salt, err = db.readSalt(ctx); err != nil {
			return err
		}
		return fn(ctx, db)
	})
}

func errNotDivided() error {
	return &exit.Error{Code: exit.Failed, Err: errors.New("the table of records is not divided into partitions; semel partitions divide does it")}
}
