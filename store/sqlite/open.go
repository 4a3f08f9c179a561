package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver without cgo, as "sqlite"

	"github.com/semelgo/semel/internal/clock"
)

const (
	// maxConns limits the connections of Open, each of which has three open files.
	maxConns = 32
	idleTime = 5 * time.Minute
	// openBound limits how long Open waits for a busy database.
	openBound = 30 * time.Second
)

// Open opens a database file, or creates it, with the settings that the store
// needs: journal mode WAL, and on every connection synchronous FULL, enforced
// foreign keys, a busy_timeout of two seconds, and transactions that begin with the
// write lock (immediate). It opens at most 32 connections; SetMaxOpenConns changes
// that. The caller closes the database.
//
// The path is a file's. ":memory:" is refused, because every connection would have
// its own database; use package store/memory for tests.
func Open(path string) (*sql.DB, error) {
	if err := checkPath(path); err != nil {
		return nil, fmt.Errorf("open sqlite database %q: %w", path, err)
	}
	db, err := sql.Open("sqlite", dsn(path))
	if err != nil {
		return nil, fmt.Errorf("open sqlite database %q: %w", path, err)
	}
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	db.SetConnMaxIdleTime(idleTime)
	if err := setUp(db); err != nil {
		db.Close()
		return nil, fmt.Errorf("open sqlite database %q: %w", path, err)
	}
	return db, nil
}

// checkPath returns a clear error where SQLite would only say that it is unable to
// open the file.
func checkPath(path string) error {
	switch {
	case path == "":
		return errors.New("the path is empty")
	case strings.HasPrefix(path, ":memory:"):
		return errors.New("every connection would have a database of its own; use a file, or store/memory")
	case strings.HasPrefix(path, "file:"):
		return errors.New("this is a URI; give the path of a file")
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Stat(filepath.Dir(path)) // the file will be created
		return err
	}
	if err == nil && info.IsDir() {
		return errors.New("it is a directory")
	}
	return err
}

func dsn(path string) string {
	settings := url.Values{
		"_pragma":   {"busy_timeout(2000)", "synchronous(FULL)", "foreign_keys(ON)"},
		"_txlock":   {"immediate"},
		"_error_rc": {"true"}, // otherwise an error can have the text of another one
	}
	name := (&url.URL{Path: filepath.ToSlash(filepath.Clean(path))}).EscapedPath()
	return "file:" + name + "?" + settings.Encode()
}

// setUp changes the file to WAL, for all later connections. SQLite does not always
// wait for the lock that this needs, so setUp retries.
func setUp(db *sql.DB) error {
	ctx, cancel := context.WithTimeout(context.Background(), openBound)
	defer cancel()
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		var mode string
		err := db.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode)
		switch {
		case err == nil && mode == "wal":
			return nil
		case err == nil:
			return fmt.Errorf("the journal mode is %s and cannot be WAL here", mode)
		case !IsBusy(err):
			return err
		}
		if clock.Sleep(ctx, wait) != nil {
			return err
		}
	}
}
