// Package postgres measures Semel on PostgreSQL against the SQL one would write
// by hand.
package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/migrate"
)

// ourConns is the size of Semel's pool, whatever the number of callers.
const ourConns = 16

// Arena is a database with Semel's tables and the plain one, where sides meet.
type Arena struct {
	lab    *lab.Lab
	server *lab.Server
	name   string
	admin  *pgxpool.Pool
	own    *pgxpool.Pool // Semel's
	said   []string      // of the connections each side has
	before func(ctx context.Context, side string) error
}

// NewArena makes the database of that name on the lab's server.
func NewArena(ctx context.Context, l *lab.Lab, name string) (*Arena, error) {
	server, err := l.Postgres(ctx)
	if err != nil {
		return nil, err
	}
	return ArenaOn(ctx, l, server, name)
}

// ArenaOn makes it on a server of one's own.
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
	if err := migrate.Postgres(ctx, a.own); err != nil {
		return nil, fmt.Errorf("make the tables: %w", err)
	}
	return a, a.exec(ctx, plainSchema)
}

// Fresh empties the tables and writes all to the disk, so that each side has the
// same start and nobody pays for another's log.
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

// Filled keeps what the tables hold from now on, so that all sides have it.
func (a *Arena) Filled(ctx context.Context) error {
	a.before = func(ctx context.Context, _ string) error { return a.exec(ctx, "checkpoint") }
	return a.exec(ctx, "vacuum analyze")
}

// Contest is one on this arena, each side with empty tables unless they were
// [Arena.Filled].
func (a *Arena) Contest(name string, callers int, sides ...contest.Side) *contest.Contest {
	return &contest.Contest{Name: name, Callers: callers, Sides: sides, Server: a.server.Usage, Before: a.before}
}
