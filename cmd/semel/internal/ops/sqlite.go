package ops

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store/sqlite"
)

// openSQLite opens the file at path. Unless the file may be new, it is first
// checked without any change, because sqlite.Open creates a missing file and
// prepares the file of another program.
func openSQLite(ctx context.Context, path string, at dbName, e openMode) (*database, error) {
	if at.schema != "" {
		return nil, exit.Usagef("--%s: SQLite has no schemas", flagSchema)
	}
	empty, err := checkFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && e == mustExist:
		return nil, exit.Usagef("--%s: there is no database %s; semel migrate creates one", flagDB, path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, exit.Usagef("--%s: %w", flagDB, err)
	case e == mustExist && empty:
		return nil, errNoTables()
	case e == mustExist:
		if err := checkTables(ctx, path, at.prefix); err != nil {
			return nil, err
		}
	}
	db, err := sqlite.Open(path) //nolint:contextcheck // it has its own timeout
	switch {
	case sqlite.IsBusy(err):
		return nil, &exit.Error{Code: exit.Unavailable, Err: err}
	case err != nil:
		return nil, exit.Usagef("--%s: %w", flagDB, err)
	}
	s := sqlite.New(db, sqlite.Options{Prefix: at.prefix})
	return &database{
		name: "sqlite:" + path, system: "sqlite", records: s, outbox: s.Outbox(), engine: transactional(s), noting: notingEngine(s), readSalt: s.Salt, //nolint:contextcheck // semel.NewRunner bounds its one question itself
		migrate: func(ctx context.Context) error {
			return sqlitemigrate.Up(ctx, db, sqlitemigrate.Options{Prefix: at.prefix})
		},
		close: func() { _ = db.Close() }, // every result was committed or reported before
	}, nil
}

// checkFile checks whether the file at path can be a database, and whether it
// is empty, like a new database.
func checkFile(path string) (empty bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	const magic = "SQLite format 3\x00"
	head := make([]byte, len(magic))
	n, err := io.ReadFull(f, head)
	switch {
	case errors.Is(err, io.EOF):
		return true, nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return false, err
	case string(head[:n]) != magic:
		return false, fmt.Errorf("%s is not a SQLite database", path)
	}
	return false, nil
}

// checkTables checks whether the database at path has the tables. It does not
// write to it.
func checkTables(ctx context.Context, path, prefix string) error {
	name := (&url.URL{Path: filepath.ToSlash(filepath.Clean(path))}).EscapedPath()
	db, err := sql.Open("sqlite", "file:"+name+"?mode=ro&_pragma=busy_timeout(2000)")
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer db.Close()
	var there bool
	err = db.QueryRowContext(ctx,
		`SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = ?`, prefix+"records").Scan(&there)
	switch {
	case err != nil:
		return withCode(fmt.Errorf("read %s: %w", path, err))
	case !there:
		return errNoTables()
	}
	return nil
}
