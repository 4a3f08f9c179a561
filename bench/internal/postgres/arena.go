// Package postgres measures Semel on PostgreSQL against hand-written SQL.
package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/lab"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
)

// ourConns is the size of Semel's pool, for any number of callers.
const ourConns = 16

// Arena is a database with Semel's tables and plain ones, for all sides.
type Arena struct {
	lab    *lab.Lab
	server *lab.Server
	name   string
	admin  *pgxpool.Pool
	own    *pgxpool.Pool // Semel's
	said   []string      // about the connections of each side
	before func(ctx context.Context, side string) error
}

// NewArena creates the database on the lab's server.
func NewArena(ctx context.Context, l *lab.Lab, name string) (*Arena, error) {
	server, err := l.Postgres(ctx)
	if err != nil {
		return nil, err
	}
	return ArenaOn(ctx, l, server, name)
}

// ArenaOn creates it on another server.
func ArenaOn(ctx context.Context, l *lab.Lab, server *lab.Server, name string) (*Arena, error) {
	a := &Arena{lab: l, server: server, name: name}
	a.before = a.Fresh
	var err error
	if a.admin, err = server.Pool(ctx, l, name, 2); err != nil {
		return nil, err
	}
	if a.own, err = server.Pool(ctx, l, name, ourConns); err != nil {
		return nil, err
	}
	if err := pgmigrate.Up(ctx, a.own, pgmigrate.Options{}); err != nil {
		return nil, fmt.Errorf("make the tables: %w", err)
	}
	return a, a.exec(ctx, plainSchema)
}

// Fresh empties the tables and runs a checkpoint, so that each side has the same
// start and none pays for another side's log.
func (a *Arena) Fresh(ctx context.Context, _ string) error {
	return a.exec(ctx, "truncate semel_records, semel_notes, naive, naive_kept, domain", "checkpoint")
}

func (a *Arena) exec(ctx context.Context, statements ...string) error {
	for _, sql := range statements {
		if _, err := a.admin.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// Filled keeps the current rows in the tables, for all sides.
func (a *Arena) Filled(ctx context.Context) error {
	a.before = func(ctx context.Context, _ string) error { return a.exec(ctx, "checkpoint") }
	return a.exec(ctx, "vacuum analyze")
}

// Contest returns a contest on this arena. Each side begins with empty tables,
// unless they were [Arena.Filled].
func (a *Arena) Contest(name string, callers int, sides ...contest.Side) *contest.Contest {
	return &contest.Contest{Name: name, Callers: callers, Sides: sides, Server: a.server.Usage, Before: a.before}
}
