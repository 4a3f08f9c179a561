package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// racePath tells a child of the test binary which database to race on.
const racePath = "SEMEL_SQLITE_RACE"

// contestedKeys is the number of keys that the processes race for.
const contestedKeys = 60

func TestMain(m *testing.M) {
	path := os.Getenv(racePath)
	if path == "" {
		os.Exit(m.Run())
	}
	won, err := runRacingProcess(context.Background(), path, uint64(os.Getpid()))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(won)
}

// runRacingProcess tries to win each key, and returns how many it won.
func runRacingProcess(ctx context.Context, path string, owner uint64) (won int, err error) {
	db, err := sqlite.Open(path)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	s := sqlite.New(db, sqlite.Options{})
	for i := range contestedKeys {
		key := fmt.Sprint(i)
		last := create(key, store.Succeeded, owner)
		for again := true; again; {
			again = false
			verdict, err := s.Atomic(ctx, last.To.ID, true,
				func(ctx context.Context, tx *sql.Tx, current store.SwapResult) (*store.Change, error) {
					if again = current.Busy; again {
						return nil, errHandler
					}
					return &last, effect(ctx, tx, key)
				})
			switch {
			case again || errors.Is(err, store.ErrSuperseded):
			case err != nil:
				return won, fmt.Errorf("%v: %w", verdict, err)
			default:
				won++
			}
		}
	}
	return won, nil
}

// Processes race for the same keys: each key has one winner and one effect.
func TestTwoProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	db, err := sqlite.Open(path)
	check.Require(t, err)
	defer db.Close()
	check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	mustExec(t, db, `CREATE TABLE effects (key TEXT NOT NULL)`)

	type child struct {
		cmd *exec.Cmd
		out strings.Builder
	}
	var children [2]child
	for i := range children {
		c := &children[i]
		c.cmd = exec.CommandContext(t.Context(), os.Args[0])
		c.cmd.Env = append(os.Environ(), racePath+"="+path)
		c.cmd.Stdout, c.cmd.Stderr = &c.out, os.Stderr
		check.Require(t, c.cmd.Start())
	}
	total, err := runRacingProcess(t.Context(), path, 1)
	check.NoError(t, err)
	for i := range children {
		c := &children[i]
		check.Require(t, c.cmd.Wait(), "a child fails with")
		won := check.Must(strconv.Atoi(strings.TrimSpace(c.out.String())))(t)
		total += won
	}
	check.Equal(t, total, contestedKeys, "%d keys have: winners", contestedKeys)
	for i := range contestedKeys {
		check.Equal(t, effects(t, db, fmt.Sprint(i)), 1, "key %d: effects", i)
	}
}
