package groupcommit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/groupcommit"
)

func TestFlushHasADeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &recordingStore{gate: make(chan struct{})}
		g := newBatcher(s, func(c *config) { c.Timeout = time.Second })
		_, errs := callAll(context.Background(), g, request{1, 0}, request{2, 1})()
		for i, err := range errs {
			check.ErrorIs(t, err, context.DeadlineExceeded, "the store does not answer: caller %d received", i)
		}
	})
}

// TestWaitingRequestExpires: a request that waits behind a flush without end fails
// after Timeout. A later request expires too, at its own deadline.
func TestWaitingRequestExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &recordingStore{gate: make(chan struct{})}
		g := newBatcher(s, func(c *config) {
			c.Timeout, c.Flush = time.Second, func(context.Context, []request) ([]request, error) {
				<-s.gate // ignores the context
				return nil, context.Canceled
			}
		})
		first := callAll(context.Background(), g, request{1, 0})
		<-time.After(time.Second / 2)
		begun := time.Now()
		_, errs := callAll(context.Background(), g, request{2, 1}, request{3, 2})()
		for _, err := range errs {
			if !errors.Is(err, groupcommit.ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a waiting caller received %v, want ErrNotSent and DeadlineExceeded", err)
			}
		}
		if took := time.Since(begun); took != time.Second {
			t.Errorf("the requests expired after %v, want the timeout", took)
		}
		close(s.gate)
		first()
		check.NoError(t, g.Wait(t.Context()), "Wait")
	})
}
