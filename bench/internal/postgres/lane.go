package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/payment"
	"github.com/semelgo/semel/internal/groupcommit"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// swaps is a batching queue in front of Swap, like the engine's.
type swaps = groupcommit.Batcher[store.ID, store.Change, store.SwapResult]

// Lane is the side of the store without the engine: all callers claim and complete
// through one batching queue.
func (a *Arena) Lane(ctx context.Context) (contest.Side, error) {
	s, err := postgres.New(a.own, postgres.Options{})
	if err != nil {
		return contest.Side{}, err
	}
	can, err := s.Capabilities(ctx)
	if err != nil {
		return contest.Side{}, err
	}
	l := groupcommit.New(groupcommit.Config[store.ID, store.Change, store.SwapResult]{
		Flush:    s.Swap,
		Key:      func(c *store.Change) store.ID { return c.To.ID },
		Flushers: can.ConcurrentSwaps, ParallelAt: 4, MaxBatch: can.MaxBatch, MaxWaiting: 1 << 20, Timeout: 30 * time.Second,
	})
	a.lab.Closing(func() error { return l.Wait(context.Background()) })
	return contest.Side{Name: "Swap", Do: viaLane(l)}, nil
}

// viaLane claims a key and completes it, with records like the engine's.
func viaLane(l *swaps) func(context.Context, *contest.Caller) error {
	return func(ctx context.Context, c *contest.Caller) error {
		scope, key := payment.Scope(c.N), c.Key()
		claim := store.Change{To: store.Record{
			ID:        store.NewID(operation, scope, key),
			Token:     store.Token{State: store.InProgress, Attempt: 1, Owner: c.Rand.Uint64()},
			Due:       30 * time.Second,
			Operation: operation, Scope: scope, Key: key, Fingerprint: fingerprint(),
		}}
		if err := apply(ctx, l, claim); err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		done := store.Change{If: claim.To.Token, To: claim.To}
		done.To.State, done.To.Due, done.To.Expire, done.To.Outcome = store.Succeeded, 0, 24*time.Hour, payment.Result()
		if err := apply(ctx, l, done); err != nil {
			return fmt.Errorf("complete: %w", err)
		}
		return nil
	}
}

const operation = "create_payment"

// fingerprint has the length of the engine's.
func fingerprint() []byte { return payment.Result()[:18] }

func apply(ctx context.Context, l *swaps, change store.Change) error {
	standing, err := l.Do(ctx, change, true)
	if err == nil && !standing.Applied(change) {
		err = fmt.Errorf("not applied: %+v", standing)
	}
	return err
}
