package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/payment"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store/sqlite"
)

// arena has a file for Semel, and one for each hand-written side.
type arena struct {
	lab     *lab.Lab
	callers int
	opened  map[string]*file // by side
	said    []string
}

// file is a database file, and its table that is emptied before each slot.
type file struct{ path, table string }

func (a *arena) sides(ctx context.Context) ([]contest.Side, error) {
	a.opened = make(map[string]*file)
	naive, err := a.best(ctx, "naive", naive)
	if err != nil {
		return nil, err
	}
	bare, err := a.best(ctx, "bare", bare)
	if err != nil {
		return nil, err
	}
	do, err := a.do(ctx)
	return []contest.Side{naive, bare, do}, err
}

// do is the side of semel.Do.
func (a *arena) do(ctx context.Context) (contest.Side, error) {
	db, err := a.open("Do", "semel_records")
	if err != nil {
		return contest.Side{}, err
	}
	if err := sqlitemigrate.Up(ctx, db, sqlitemigrate.Options{}); err != nil {
		return contest.Side{}, fmt.Errorf("make the tables: %w", err)
	}
	engine, err := semel.New(sqlite.New(db, sqlite.Options{}), semel.Options{})
	if err != nil {
		return contest.Side{}, err
	}
	a.lab.Closing(func() error { return engine.Close(context.Background()) })
	return contest.Side{Name: "Do", Do: payment.Do(engine)}, nil
}

// best gives a side the number of connections that is best for it: one, which never
// waits for a lock, or several.
func (a *arena) best(ctx context.Context, name string, do workload) (contest.Side, error) {
	sizes := []int{1, 4}
	if a.callers == 1 {
		sizes = sizes[:1]
	}
	var sides []contest.Side
	for _, n := range sizes {
		side := fmt.Sprintf("%s with %d", name, n)
		db, err := a.open(side, "naive")
		if err != nil {
			return contest.Side{}, err
		}
		db.SetMaxOpenConns(n)
		if _, err := db.ExecContext(ctx, plainSchema); err != nil {
			return contest.Side{}, fmt.Errorf("make the table: %w", err)
		}
		one, err := do(ctx, db)
		if err != nil {
			return contest.Side{}, err
		}
		sides = append(sides, contest.Side{Name: side, Do: one})
	}
	at, err := a.fastest(ctx, name, sides)
	if err != nil {
		return contest.Side{}, err
	}
	a.opened[name] = a.opened[sides[at].Name]
	a.said = append(a.said, fmt.Sprintf("%s has %d connections", name, sizes[at]))
	return contest.Side{Name: name, Do: sides[at].Do}, nil
}

func (a *arena) fastest(ctx context.Context, name string, sides []contest.Side) (int, error) {
	if len(sides) == 1 {
		return 0, nil
	}
	trial := contest.Contest{
		Name: "sqlite, connections of " + name, Callers: a.callers, Sides: sides, Before: a.fresh,
		Rounds: a.lab.Trials(), Slot: a.lab.Slot() / 3,
	}
	o, err := trial.Run(ctx, a.lab)
	if err != nil {
		return 0, err
	}
	return o.Fastest(sides), nil
}

// open creates a side's file. It is closed with the experiment.
func (a *arena) open(side, table string) (*sql.DB, error) {
	name := strings.ReplaceAll(fmt.Sprintf("%s-%d.db", side, a.callers), " ", "-")
	f := &file{filepath.Join(a.lab.Dir(), name), table}
	db, err := sqlite.Open(f.path)
	if err != nil {
		return nil, err
	}
	a.lab.Closing(db.Close)
	a.opened[side] = f
	return db, nil
}

// fresh empties a side's table and log. It uses its own connection: a connection
// whose page cache once held the whole table stays slow, because each later commit
// searches the cache for removed pages.
func (a *arena) fresh(ctx context.Context, side string) (err error) {
	f := a.opened[side]
	db, err := sqlite.Open(f.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, statement := range []string{"delete from " + f.table, "pragma wal_checkpoint(truncate)"} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// say adds the sides' numbers of connections to each finding.
func (a *arena) say(found []goal.Finding) []goal.Finding {
	for i := range found {
		found[i].Detail += "; " + strings.Join(a.said, "; ")
	}
	return found
}
