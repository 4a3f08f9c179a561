package semel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/store"
)

// follow answers from another caller's flight of the same key. It returns
// nothing when the flight landed on nothing, so that the asker begins anew.
func (q *ask) follow(ctx context.Context, f *flight) (*Outcome, error) {
	ctx, end := patient(ctx)
	defer end()
	if err := q.decided(ctx, f); err != nil {
		return nil, err
	}
	if running, holds := f.runs(); running {
		switch {
		case q.call.compareFingerprint(f.call.fingerprint()) == sameRequest:
		case holds:
			return nil, q.refusal(ctx, sayMismatch, q.call.identity())
		default:
			if out, err := q.recorded(ctx); out != nil || err != nil {
				return out, err
			}
		}
		if err := q.attach(ctx, f, f.passage(done)); err != nil {
			return nil, err
		}
	}
	<-f.passage(done)
	stands, err := f.landed()
	if errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	if out, refused := q.answerFrom(ctx, stands); out != nil || refused != nil {
		return out, refused
	}
	if errors.Is(err, ErrInProgress) && q.c.until(q.deadline) <= 0 {
		return nil, err
	}
	return nil, nil
}

// recorded answers from the record that the store has now. It returns nothing if that
// does not answer the call.
func (q *ask) recorded(ctx context.Context) (*Outcome, error) {
	stands, err := q.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: read the record: %w", ErrUnavailable, err)
	}
	return q.answerFrom(ctx, stands)
}

// answerFrom answers from a record, if it is final, in doubt, or another request's.
func (q *ask) answerFrom(ctx context.Context, r store.Record) (*Outcome, error) {
	switch d := next(r, event{step: stepClaim, policy: q.attempt.policy, of: q.call}); d.say {
	case sayReplay:
		return q.c.replay(ctx, r)
	case sayMismatch, sayNewer, sayDoubt:
		return nil, q.refusal(ctx, d.say, r)
	default:
		return nil, nil
	}
}

// decided waits until it is known whether the flight is running. That takes one
// answer of the store, or a place to wait.
func (q *ask) decided(ctx context.Context, f *flight) error {
	known := f.passage(decided)
	select {
	case <-known:
		return nil
	default:
	}
	select {
	case <-known:
		return nil
	case <-f.passage(unseen):
		return q.attach(ctx, f, known)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attach waits for a flight of this process: nothing but a goroutine waits.
func (q *ask) attach(ctx context.Context, f *flight, over <-chan struct{}) error {
	if !q.sit() {
		return &waitError{after: retryAfter(store.Record{Since: q.c.since(f.begun)})}
	}
	err := await(ctx, over, q.c.until(q.deadline))
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return &waitError{after: retryAfter(store.Record{Since: q.c.since(f.begun)})}
	}
	return err
}

// wait stays away from a record that another process runs, for a moment, and
// returns what stands then.
func (q *ask) wait(ctx context.Context, stands store.Record) (store.Record, error) {
	left := q.c.until(q.deadline)
	if left <= 0 || !q.sit() {
		return stands, &waitError{after: retryAfter(stands)}
	}
	if q.attempt.flight != nil {
		q.c.flights.wait(q.attempt.flight, stands)
	}
	waited := q.attempt.times.wait - left
	poll := min(max(stands.Since/4, waited/4, 20*time.Millisecond), time.Second)
	waiting, done := patient(ctx)
	defer done()
	if err := pause(waiting, min(jitter(poll), left)); err != nil {
		return stands, err
	}
	now, err := q.read(ctx)
	if err != nil {
		return stands, fmt.Errorf("%w: read the record: %w", ErrUnavailable, err)
	}
	return now, nil
}

// sit takes a place among those who wait; it says no to those who have no time
// to wait and to those for whom there is no place.
func (q *ask) sit() bool {
	if q.attempt.times.wait > 0 && !q.attempt.seated {
		q.attempt.seated = q.c.flights.seat(q.c.options.MaxWaiters)
	}
	return q.attempt.seated
}

func (q *ask) rise() {
	if q.attempt.seated {
		q.c.flights.rise()
		q.attempt.seated = false
	}
}

// replay answers from a final record.
func (c *Core) replay(ctx context.Context, stands store.Record) (*Outcome, error) {
	c.see(ctx, EventReplayed, stands, nil)
	if stands.State == store.Failed {
		return nil, &replayedError{decodeFailure(stands.Outcome)}
	}
	return &Outcome{Record: stands, Replayed: true}, nil
}
