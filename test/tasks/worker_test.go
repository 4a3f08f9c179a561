//go:build unix

package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/task"
)

// beWorker runs tasks until it is told to stop.
func beWorker[Tx any](ctx context.Context, c child, s *site[Tx], m *marks) error {
	e, err := semel.New(s.store, semel.Options{Operations: operations(), Observer: m})
	if err != nil {
		return err
	}
	w, err := newWorker(e, s, c.Name)
	if err != nil {
		return err
	}
	say("ready")
	err = w.Run(ctx)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(err, e.Close(bounded))
}

// newWorker returns a worker that knows what to do for each operation.
func newWorker[Tx any](e *semel.Engine[Tx], s *site[Tx], name string) (*task.Worker[Tx], error) {
	w, err := task.New(e, task.Options{Slots: 10, Poll: 50 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	within := func(ctx context.Context, tx Tx, j job) (string, error) {
		return j.do(ctx, name, func(ctx context.Context, of effect) error { return s.effect(ctx, tx, of) })
	}
	return w, errors.Join(
		task.HandleTx(w, inTx, within, task.HandlerOptions{}),
		task.HandleTx(w, hopeless, func(ctx context.Context, tx Tx, j job) (string, error) {
			result, err := within(ctx, tx, j)
			return result, errors.Join(err, errMeant)
		}, task.HandlerOptions{}),
		task.HandleTx(w, ticked, func(ctx context.Context, tx Tx, tick time.Time) (string, error) {
			a, _ := semel.AttemptOf(ctx)
			return "", s.effect(ctx, tx, effect{fmt.Sprint(tick.Unix()), a.Number(), a.Token().Owner, name})
		}, task.HandlerOptions{}),
		task.Handle(w, outside, func(ctx context.Context, j job) (string, error) {
			return j.do(ctx, name, func(ctx context.Context, of effect) error {
				_, err := s.tables.ExecContext(ctx, insertEffect, of.key, of.attempt, int64(of.owner), of.process)
				return err
			})
		}, task.HandlerOptions{}),
	)
}
