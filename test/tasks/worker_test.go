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
	e, err := semel.New(s.store, semel.Options{Survive: store.NoFailure, Operations: c.operations(), Observer: m})
	if err != nil {
		return err
	}
	w, err := task.New(e, task.Options{Slots: c.Slots, Poll: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	functions := functionsOf(w, e, s, c.Name)
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

// worker is what a worker is told that runs the jobs of those operations.
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
		return j.do(ctx, name, func(ctx context.Context, of effect) error { return s.effect(ctx, tx, of) })
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
		outside: func() error {
			return task.Handle(w, outside, func(ctx context.Context, j job) (string, error) {
				return j.do(ctx, name, func(ctx context.Context, of effect) error {
					_, err := s.tables.ExecContext(ctx, insertEffect, of.key, of.attempt, int64(of.owner), of.process)
					return err
				})
			}, task.HandlerOptions{})
		},
	}
}
