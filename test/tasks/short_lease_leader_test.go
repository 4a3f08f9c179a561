//go:build unix

package tasks_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/store"
)

// shortLeaseLeader claims waiting calls and ends them at random times, without
// heartbeats and without checking its lease.
type shortLeaseLeader[Tx any] struct {
	child    child
	database *database[Tx]
	engine   *semel.Engine[Tx]
}

func beShortLeaseLeader[Tx any](ctx context.Context, c child, s *database[Tx], m *counters) error {
	e, err := semel.New(s.store, semel.Options{Survive: store.NoFailure, Observer: m})
	if err != nil {
		return err
	}
	l := &shortLeaseLeader[Tx]{c, s, e}
	var both sync.WaitGroup
	both.Go(func() { l.lead(ctx, shortLeaseTx, l.endEach) })
	both.Go(func() { l.lead(ctx, shortLeaseOp, l.endMany) })
	both.Wait()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return e.Close(bounded)
}

// lead claims one batch after another. It retries while the store does not answer.
func (l *shortLeaseLeader[Tx]) lead(ctx context.Context, op *semel.Operation[string], run func([]*semel.Attempt)) {
	for ctx.Err() == nil {
		claimed, err := adapter.Dequeue(context.WithoutCancel(ctx), l.engine, op, 5)
		if err != nil || len(claimed) == 0 {
			after(ctx, 10*time.Millisecond)
			continue
		}
		run(claimed)
	}
}

// waitAboutALease waits from much less than a lease to somewhat more.
func waitAboutALease(ctx context.Context) { after(ctx, shortLease/5+rand.N(shortLease)) }

// endEach ends each attempt in a transaction of its own.
func (l *shortLeaseLeader[Tx]) endEach(claimed []*semel.Attempt) {
	var all sync.WaitGroup
	for _, a := range claimed {
		all.Go(func() {
			if _, err := a.Prepare(); err != nil {
				return
			}
			ctx := context.WithoutCancel(a.Context()) // continues after the stop command
			waitAboutALease(ctx)
			_, err := semel.InTx(ctx, l.engine, func(ctx context.Context, tx Tx) (string, error) {
				return a.Call().Key(), l.database.effect(ctx, tx, l.effect(a))
			})
			_, _ = a.End(nil, err) // the tables are checked instead
		})
	}
	all.Wait()
}

// endMany ends all attempts in one store call.
func (l *shortLeaseLeader[Tx]) endMany(claimed []*semel.Attempt) {
	var ends []*adapter.Completion
	for _, a := range claimed {
		if _, err := a.Prepare(); err != nil {
			continue
		}
		e := l.effect(a)
		ctx := context.WithoutCancel(a.Context())
		err := l.database.note(ctx, insertEffect, e.key, e.attempt, int64(e.owner), e.process)
		ends = append(ends, &adapter.Completion{Attempt: a, Value: e.key, Err: err})
	}
	waitAboutALease(context.Background())
	for _, e := range adapter.CompleteMany(context.Background(), l.engine, ends) {
		_, _ = e.Attempt.End(e.Value, e.Err) // the tables are checked instead
	}
}

func (l *shortLeaseLeader[Tx]) effect(a *semel.Attempt) effect {
	return effect{key: a.Call().Key(), attempt: a.Number(), owner: a.Token().Owner, process: l.child.Name}
}

// after waits d, or less when ctx ends.
func after(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
