//go:build unix

package tasks_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// hurriedLeader claims waiting calls and ends them when it happens to, without a
// heartbeat and without a look at its lease.
type hurriedLeader[Tx any] struct {
	child  child
	site   *site[Tx]
	engine *semel.Engine[Tx]
}

func beHurried[Tx any](ctx context.Context, c child, s *site[Tx], m *marks) error {
	e, err := semel.New(s.store, semel.Options{Survive: store.NoFailure, Observer: m})
	if err != nil {
		return err
	}
	l := &hurriedLeader[Tx]{c, s, e}
	var both sync.WaitGroup
	both.Go(func() { l.lead(ctx, hurriedTx, l.oneByOne) })
	both.Go(func() { l.lead(ctx, hurried, l.together) })
	both.Wait()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return e.Close(bounded)
}

// lead claims a batch after the other. A store that does not answer is asked again.
func (l *hurriedLeader[Tx]) lead(ctx context.Context, op *semel.Operation[string], run func([]*semel.Attempt)) {
	for ctx.Err() == nil {
		claimed, err := l.engine.Dequeue(context.WithoutCancel(ctx), op, 5)
		if err != nil || len(claimed) == 0 {
			after(ctx, 10*time.Millisecond)
			continue
		}
		run(claimed)
	}
}

// aboutALease waits from much less than a lease to somewhat more.
func aboutALease(ctx context.Context) { after(ctx, hurry/5+rand.N(hurry)) }

// oneByOne ends each attempt in a transaction of its own.
func (l *hurriedLeader[Tx]) oneByOne(claimed []*semel.Attempt) {
	var all sync.WaitGroup
	for _, a := range claimed {
		all.Go(func() {
			if _, err := a.Prepare(); err != nil {
				return
			}
			ctx := context.WithoutCancel(a.Context()) // goes on when it is told to stop
			aboutALease(ctx)
			_, err := semel.InTx(ctx, l.engine, func(ctx context.Context, tx Tx) (string, error) {
				return a.Call().Key(), l.site.effect(ctx, tx, l.effect(a))
			})
			_, _ = a.End(nil, err) // the tables tell
		})
	}
	all.Wait()
}

// together ends all attempts in one asking of the store, and the others alone.
func (l *hurriedLeader[Tx]) together(claimed []*semel.Attempt) {
	var ends []*semel.Completion
	for _, a := range claimed {
		if _, err := a.Prepare(); err != nil {
			continue
		}
		e := l.effect(a)
		ctx := context.WithoutCancel(a.Context())
		err := l.site.note(ctx, insertEffect, e.key, e.attempt, int64(e.owner), e.process)
		ends = append(ends, &semel.Completion{Attempt: a, Value: e.key, Err: err})
	}
	aboutALease(context.Background())
	for _, e := range l.engine.CompleteMany(context.Background(), ends) {
		_, _ = e.Attempt.End(e.Value, e.Err) // the tables tell
	}
}

func (l *hurriedLeader[Tx]) effect(a *semel.Attempt) effect {
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
