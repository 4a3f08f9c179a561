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

// Naive is the side of the two plain statements, each committed by itself.
func (a *Arena) Naive(ctx context.Context, callers int) (contest.Side, error) {
	return a.best(ctx, "naive", callers, naive)
}

// Kept is the side of the same two statements, where what is stuck and what is old can
// be found.
func (a *Arena) Kept(ctx context.Context, callers int) (contest.Side, error) {
	return a.best(ctx, "kept", callers, kept)
}

// Bare is the side of one insert of the finished row.
func (a *Arena) Bare(ctx context.Context, callers int) (contest.Side, error) {
	return a.best(ctx, "bare", callers, bare)
}

// best gives a side as many connections as serve it best: some numbers are tried,
// and what came of it is said with what was found.
func (a *Arena) best(ctx context.Context, name string, callers int, do work) (contest.Side, error) {
	sizes := poolSizes(callers)
	sides, pools := make([]contest.Side, len(sizes)), make([]*pgxpool.Pool, len(sizes))
	for i, n := range sizes {
		pool, err := a.server.Pool(ctx, a.lab, a.name, n)
		if err != nil {
			return contest.Side{}, err
		}
		one, err := do(pool)
		if err != nil {
			return contest.Side{}, err
		}
		sides[i], pools[i] = contest.Side{Name: strconv.Itoa(n), Do: one}, pool
	}
	at := 0
	if len(sides) > 1 {
		trial := a.Contest(fmt.Sprintf("postgres, connections of %s at %d", name, callers), callers, sides...)
		trial.Rounds, trial.Slot = a.lab.Trials(), a.lab.Slot()/3
		o, err := trial.Run(ctx, a.lab)
		if err != nil {
			return contest.Side{}, err
		}
		at = o.Fastest(sides)
	}
	for i, pool := range pools {
		if i != at {
			pool.Close()
		}
	}
	a.said = append(a.said, fmt.Sprintf("%s has %d connections, the best of %s", name, sizes[at], list(sizes)))
	return contest.Side{Name: name, Do: sides[at].Do}, nil
}

// poolSizes are those that are tried: one for each caller, and fewer.
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

// Say adds to each finding which connections the sides had.
func (a *Arena) Say(found []goal.Finding) []goal.Finding {
	for i := range found {
		found[i].Detail += "; " + strings.Join(a.said, "; ")
	}
	return found
}

func list(sizes []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(sizes), " ", ", "), "[]")
}
