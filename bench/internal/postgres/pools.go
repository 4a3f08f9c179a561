package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
)

// Naive is the side of two plain statements, each in its own transaction.
func (a *Arena) Naive(ctx context.Context, callers int) (contest.Side, error) {
	return a.best(ctx, "naive", callers, naive)
}

// Kept is the side of the same statements on the table whose stuck and old rows can
// be found.
func (a *Arena) Kept(ctx context.Context, callers int) (contest.Side, error) {
	return a.best(ctx, "kept", callers, kept)
}

// Bare is the side of one insert of the finished row.
func (a *Arena) Bare(ctx context.Context, callers int) (contest.Side, error) {
	return a.best(ctx, "bare", callers, bare)
}

// best gives a side the number of connections that is best for it.
func (a *Arena) best(ctx context.Context, name string, callers int, do workload) (contest.Side, error) {
	conns, err := a.connections(ctx, name, callers, do)
	if err != nil {
		return contest.Side{}, err
	}
	side, _, err := a.with(ctx, conns, do)
	side.Name = name
	return side, err
}

// connections finds the best number of connections for a side by trials. The result
// is part of the findings' detail.
func (a *Arena) connections(ctx context.Context, name string, callers int, do workload) (int, error) {
	sizes := poolSizes(callers)
	at := 0
	if len(sizes) > 1 {
		var err error
		if at, err = a.tryAll(ctx, name, callers, do, sizes); err != nil {
			return 0, err
		}
	}
	a.said = append(a.said, fmt.Sprintf("%s has %d connections, the best of %s", name, sizes[at], list(sizes)))
	return sizes[at], nil
}

func (a *Arena) tryAll(ctx context.Context, name string, callers int, do workload, sizes []int) (best int, err error) {
	sides := make([]contest.Side, len(sizes))
	for i, n := range sizes {
		side, pool, err := a.with(ctx, n, do)
		if err != nil {
			return 0, err
		}
		defer pool.Close()
		sides[i] = side
	}
	trial := a.Contest(fmt.Sprintf("postgres, connections of %s at %d", name, callers), callers, sides...)
	trial.Rounds, trial.Slot = a.lab.Trials(), a.lab.Slot()/3
	o, err := trial.Run(ctx, a.lab)
	if err != nil {
		return 0, err
	}
	return o.Fastest(sides), nil
}

// with returns a side that has n connections, and is named after that number.
func (a *Arena) with(ctx context.Context, conns int, do workload) (contest.Side, *pgxpool.Pool, error) {
	pool, err := a.server.Pool(ctx, a.lab, a.name, conns)
	if err != nil {
		return contest.Side{}, nil, err
	}
	one, err := do(pool)
	return contest.Side{Name: strconv.Itoa(conns), Do: one}, pool, err
}

// poolSizes are the numbers that are tried: one connection for each caller, and
// fewer.
func poolSizes(callers int) []int {
	sizes := []int{max(callers, 2)}
	for _, n := range []int{16, 32, 64} {
		if n < callers {
			sizes = append(sizes, n)
		}
	}
	slices.Sort(sizes)
	return sizes
}

// Say adds the sides' numbers of connections to each finding.
func (a *Arena) Say(found []goal.Finding) []goal.Finding {
	for i := range found {
		found[i].Detail += "; " + strings.Join(a.said, "; ")
	}
	return found
}

func list(sizes []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(sizes), " ", ", "), "[]")
}
