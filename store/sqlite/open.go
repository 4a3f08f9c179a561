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
)

const (
	// maxConns bounds the connections of Open, each of which has three files.
	maxConns = 32
	idleTime = 5 * time.Minute
	// openBound is how long a busy database may keep Open from setting it up.
	openBound = 30 * time.Second
)

// Open opens a database file, which it creates if there is none, with the
// settings that the store needs: the journal mode WAL, and on every connection
// synchronous FULL, foreign keys enforced, two seconds of patience with a lock
// (busy_timeout), and transactions that begin with the write lock (immediate).
// It opens at most 32 connections; SetMaxOpenConns changes that. The caller
// closes the database.
//
// The path is that of a file. ":memory:" is refused, because there every
// connection has a database of its own; package store/memory is for tests.
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

// checkPath says in plain words what SQLite would call unable to open.
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
		_, err = os.Stat(filepath.Dir(path)) // the file will be made
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
		"_error_rc": {"true"}, // or the text of an error can be that of another
	}
	name := (&url.URL{Path: filepath.ToSlash(filepath.Clean(path))}).EscapedPath()
	return "file:" + name + "?" + settings.Encode()
}

// setUp changes the file to WAL, once and for all its connections. SQLite does
// not always wait for the lock that takes, so it is tried again.
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
		if pause(ctx, wait) != nil {
			return err
		}
	}
}
