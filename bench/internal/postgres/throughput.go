package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/payment"
	"github.com/semelgo/semel/store/postgres"
)

// Engine returns one on the arena's database. It is closed with the lab.
func (a *Arena) Engine() (*semel.Engine[pgx.Tx], error) {
	s, err := postgres.New(a.own, postgres.Options{})
	if err != nil {
		return nil, err
	}
	engine, err := semel.New(s, semel.Options{})
	if err != nil {
		return nil, err
	}
	a.lab.Closing(func() error { return engine.Close(context.Background()) })
	return engine, nil
}

// against are the rows of a number of callers.
type against struct {
	callers     int
	naive, bare *goal.Row // throughput of Do against theirs
	server      *goal.Row // its server's processor time, as a share of naive's
	p99         *goal.Row // its p99, as a share of naive's
}

func (a against) rows() []goal.Row {
	var rows []goal.Row
	for _, r := range []*goal.Row{a.naive, a.bare, a.server, a.p99} {
		if r != nil {
			rows = append(rows, *r)
		}
	}
	return rows
}

func (a against) experiment() lab.Experiment {
	return lab.Experiment{Name: fmt.Sprintf("postgres, %d callers", a.callers), Rows: a.rows(), Run: a.run}
}

func (a against) run(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
	arena, err := NewArena(ctx, l, "payments")
	if err != nil {
		return nil, err
	}
	naive, said, err := arena.Naive(ctx, a.callers)
	if err != nil {
		return nil, err
	}
	bare, alsoSaid, err := arena.Bare(ctx, a.callers)
	if err != nil {
		return nil, err
	}
	engine, err := arena.Engine()
	if err != nil {
		return nil, err
	}
	do := contest.Side{Name: "Do", Do: payment.Do(engine)}
	o, err := arena.Contest(fmt.Sprintf("postgres, %d callers", a.callers), a.callers, naive, bare, do).Run(ctx, l)
	if err != nil {
		return nil, err
	}
	plot(l, o, naive.Name, bare.Name, do.Name)
	found := a.judge(o)
	for i := range found {
		found[i].Detail += fmt.Sprintf("; %s; %s; Do has %d", said, alsoSaid, ourConns)
	}
	return found, nil
}

func (a against) judge(o *contest.Outcome) []goal.Finding {
	var found []goal.Finding
	if a.naive != nil {
		found = append(found, o.Faster(*a.naive, "Do", "naive"))
	}
	if a.bare != nil {
		found = append(found, o.Faster(*a.bare, "Do", "bare"))
	}
	if a.server != nil {
		found = append(found, o.Compared(a.server.Name, "Do", "naive", contest.ServerCPU))
	}
	if a.p99 != nil {
		found = append(found, o.Compared(a.p99.Name, "Do", "naive", contest.P99))
	}
	return found
}

// plot adds what each side has shown to the charts.
func plot(l *lab.Lab, o *contest.Outcome, sides ...string) {
	for _, side := range sides {
		x := float64(o.Callers)
		l.Point("throughput", side, x, o.Of(side, contest.Throughput))
		l.Point("p99", side, x, o.Of(side, contest.P99)/1000)
		l.Point("cpu", side, x, o.Of(side, contest.CPU))
	}
}
