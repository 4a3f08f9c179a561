package postgres

import (
	"context"
	"errors"

	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
)

// quorumCallers is the number of callers of the quorum.
const quorumCallers = 64

func quorumOverOne() goal.Row {
	return goal.AtLeast("Postgres with two standbys, throughput of Do at 64 callers, against one server", "x", 0.4, 0.45)
}

func quorumOverNaive() goal.Row {
	return goal.Shown("Postgres with two standbys, throughput of Do at 64 callers, against two plain statements there", "x")
}

// quorum compares a primary whose commits wait for one of two standbys with one server
// of the same settings. A machine of its own for each server would serve it better.
func quorum() lab.Experiment {
	return lab.Experiment{Name: "postgres, with two standbys", Rows: []goal.Row{quorumOverOne(), quorumOverNaive()}, Run: runQuorum}
}

func runQuorum(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
	if l.Quick {
		return nil, errors.New("a quick run starts no standbys")
	}
	one, err := NewArena(ctx, l, "payments_of_one")
	if err != nil {
		return nil, err
	}
	server, err := l.StartQuorum(ctx)
	if err != nil {
		return nil, err
	}
	replicated, err := ArenaOn(ctx, l, server, "payments")
	if err != nil {
		return nil, err
	}
	single, err := one.Do()
	if err != nil {
		return nil, err
	}
	single.Name, single.Server = "one server", one.server.Usage
	do, err := replicated.Do()
	if err != nil {
		return nil, err
	}
	naive, err := replicated.Naive(ctx, quorumCallers)
	if err != nil {
		return nil, err
	}
	c := replicated.Contest("postgres, with two standbys", quorumCallers, single, naive, do)
	c.Before = func(ctx context.Context, side string) error {
		return errors.Join(one.Fresh(ctx, side), replicated.Fresh(ctx, side))
	}
	o, err := c.Run(ctx, l)
	if err != nil {
		return nil, err
	}
	return replicated.Say([]goal.Finding{o.Faster(quorumOverOne(), do.Name, single.Name), o.Faster(quorumOverNaive(), do.Name, naive.Name)}), nil
}
