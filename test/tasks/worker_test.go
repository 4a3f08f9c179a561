//go:build unix

package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/task"
)

// runWorker runs tasks until it is told to stop.
func runWorker[Tx any](ctx context.Context, c child, s *database[Tx], m *counters) error {
	o := semel.Options{Survive: store.NoFailure, Operations: c.operations(), Observer: m}
	if c.Records.Engine != "" {
		records, end, err := c.Records.Open()
		if err != nil {
			return err
		}
		e, err := semel.NewRunner(records, o)
		if err != nil {
			return err
		}
		return errors.Join(work(ctx, c, e, func(w *task.Worker) map[semel.Declared]func() error {
			return map[semel.Declared]func() error{outside: handleOutside(w, s.tables, c.Name)}
		}), end())
	}
	e, err := semel.New(s.store, o)
	if err != nil {
		return err
	}
	return work(ctx, c, e, func(w *task.Worker) map[semel.Declared]func() error { return functionsOf(w, e, s, c.Name) })
}

// work runs tasks with the functions of a worker.
func work(ctx context.Context, c child, e semel.Runner, of func(*task.Worker) map[semel.Declared]func() error) error {
	w, err := task.New(e, task.Options{Slots: c.Slots, Poll: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	functions := of(w)
	for _, op := range c.operations() {
		if err := functions[op](); err != nil {
			return err
		}
	}
	report("ready")
	err = w.Run(ctx)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(err, e.Close(bounded))
}

// worker returns the arguments of a worker that runs the jobs of these operations.
func worker(at databaseAddress, name string, ops ...*semel.Operation[job]) child {
	c := child{Role: "worker", Name: name, Place: at}
	for _, op := range ops {
		c.Operations = append(c.Operations, op.Name())
	}
	return c
}

// operations are those that the process knows.
func (c child) operations() []semel.Declared {
	var known []semel.Declared
	all := map[string]semel.Declared{
		inTx.Name(): inTx, longLeaseOp.Name(): longLeaseOp, outside.Name(): outside, alwaysFails.Name(): alwaysFails,
		poison.Name(): poison, ticked.Name(): ticked, shortLeaseOp.Name(): shortLeaseOp, shortLeaseTx.Name(): shortLeaseTx,
	}
	for _, name := range c.Operations {
		known = append(known, all[name])
	}
	return known
}

// functionsOf give a worker its function for each operation.
func functionsOf[Tx any](w *task.Worker, e *semel.Engine[Tx], s *database[Tx], name string) map[semel.Declared]func() error {
	within := func(ctx context.Context, tx Tx, j job) (string, error) {
		return j.do(ctx, s.tables, name, func(ctx context.Context, of effect) error { return s.effect(ctx, tx, of) })
	}
	jobs := func(op *semel.Operation[job], fn func(context.Context, Tx, job) (string, error)) func() error {
		return func() error { return task.HandleTx(w, e, op, fn, task.HandlerOptions{}) }
	}
	return map[semel.Declared]func() error{
		inTx:        jobs(inTx, within),
		longLeaseOp: jobs(longLeaseOp, within),
		alwaysFails: jobs(alwaysFails, func(ctx context.Context, tx Tx, j job) (string, error) {
			result, err := within(ctx, tx, j)
			return result, errors.Join(err, errIntended)
		}),
		poison: jobs(poison, func(ctx context.Context, tx Tx, j job) (string, error) {
			defer crash()
			return within(ctx, tx, j)
		}),
		ticked: func() error {
			return task.HandleTx(w, e, ticked, func(ctx context.Context, tx Tx, tick time.Time) (string, error) {
				a, _ := semel.AttemptOf(ctx)
				return "", s.effect(ctx, tx, effect{fmt.Sprint(tick.Unix()), a.Number(), a.Token().Owner, name})
			}, task.HandlerOptions{})
		},
		outside: handleOutside(w, s.tables, name),
	}
}

// handleOutside gives a worker its function for jobs whose effect is not in the records'
// database, or not in their transaction.
func handleOutside(w *task.Worker, db tables, name string) func() error {
	return func() error {
		return task.Handle(w, outside, func(ctx context.Context, j job) (string, error) {
			return j.do(ctx, db, name, db.addEffect)
		}, task.HandlerOptions{})
	}
}
