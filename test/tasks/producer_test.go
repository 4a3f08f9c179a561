//go:build unix

package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/realtest"
)

// errUndone rolls a transaction of the producer back.
var errUndone = errors.New("undone")

// producer enqueues jobs, several in a transaction. It rolls some transactions back
// and enqueues some jobs twice.
type producer[Tx any] struct {
	directCaller

	database *database[Tx]
	engine   *semel.Engine[Tx]
	undone   int // jobs that were rolled back
	twice    int // jobs that were enqueued twice
}

func newProducer[Tx any](s *database[Tx], e *semel.Engine[Tx], op *semel.Operation[job]) *producer[Tx] {
	return &producer[Tx]{database: s, engine: e, directCaller: directCaller{
		op: op, seed: rand.Uint64(), note: s.note,
		do: func(ctx context.Context, c semel.Call, j job) (string, error) {
			result, _, err := semel.DoTx(ctx, e, c, func(ctx context.Context, tx Tx) (string, error) {
				return j.do(ctx, s.tables, "caller", func(ctx context.Context, of effect) error { return s.effect(ctx, tx, of) })
			})
			return result, err
		},
	}}
}

// batch is how many jobs a transaction of the producer enqueues.
const batch = 20

// run enqueues the jobs below n that are not held, a batch at each tick.
func (p *producer[Tx]) run(ctx context.Context, n int, ticks <-chan time.Time) error {
	for first := p.held; first < n; first += batch {
		select {
		case <-ticks:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := p.round(ctx, first, min(batch, n-first)); err != nil {
			return err
		}
	}
	return nil
}

// round enqueues the jobs from first on.
func (p *producer[Tx]) round(ctx context.Context, first, n int) error {
	if (first-p.held)%(5*batch) == 0 {
		err := p.database.transact(ctx, func(ctx context.Context, tx Tx) error {
			return errors.Join(p.enqueue(ctx, tx, "undone", first, batch/4), errUndone)
		})
		if !errors.Is(err, errUndone) {
			return fmt.Errorf("roll back: %w", err)
		}
		p.undone += batch / 4
	}
	err := p.database.transact(ctx, func(ctx context.Context, tx Tx) error { return p.enqueue(ctx, tx, "job", first, n) })
	if err != nil {
		return err
	}
	p.enqueued.Store(int64(first + n))
	return p.enqueueAgain(ctx, rand.IntN(first+n))
}

// enqueue enqueues n jobs from first on, with keys of this kind.
func (p *producer[Tx]) enqueue(ctx context.Context, tx Tx, kind string, first, n int) error {
	for i := first; i < first+n; i++ {
		o := semel.EnqueueOptions{Priority: rand.IntN(9) - 4}
		if i%10 == 0 {
			o.Delay = rand.N(time.Second)
		}
		c := p.op.Call(semel.Shared(), fmt.Sprintf("%s-%d", kind, i), p.job(i))
		var added bool
		var err error
		_ = realtest.Retry(ctx, func() bool { // err says more
			added, err = semel.EnqueueTx(ctx, p.engine, tx, c, o)
			return !errors.Is(err, semel.ErrInProgress) // the database was too busy
		})
		if !added || err != nil {
			return fmt.Errorf("enqueue job %d: added %v: %w", i, added, err)
		}
	}
	return nil
}

// enqueueAgain enqueues a job a second time.
func (p *producer[Tx]) enqueueAgain(ctx context.Context, n int) error {
	added, err := semel.Enqueue(ctx, p.engine, p.call(n), semel.EnqueueOptions{})
	if added || err != nil && !errors.Is(err, semel.ErrInProgress) {
		return fmt.Errorf("enqueue job %d again: added %v: %w", n, added, err)
	}
	p.twice++
	return nil
}
