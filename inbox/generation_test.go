package inbox_test

import (
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
)

// TestGenerations: a message without a time still has its record after the end
// of its generation, and no longer after the end of the next one. Its failures
// are not stored.
func TestGenerations(t *testing.T) {
	t.Parallel()
	for _, mode := range transactional() {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			r, stores := inMemoryAt()
			now := &clock{now: time.Now().Truncate(time.Hour).Add(59 * time.Minute)}
			e := r.engine(t, semel.Options{Clock: now.Now})
			in, err := inbox.New("ship", inbox.Options[string]{Group: "shipping", Mode: mode, Generation: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			deliver := func(ends error) inbox.Result {
				return handleIn(t.Context(), in, e, newMessage("shop", "1", "a"), func() error { return ends })
			}
			for range 20 {
				want(t, deliver(errHandler), inbox.Result{Decision: inbox.Redeliver})
			}
			if got := deliver(semel.Final(errors.New("no"))); got.Decision == inbox.Ack {
				t.Errorf("a final failure: %+v", got)
			}
			want(t, deliver(nil), inbox.Result{Decision: inbox.Ack})
			for range 2 {
				want(t, deliver(errHandler), inbox.Result{Decision: inbox.Ack, Duplicate: true})
				now.advance(time.Hour)
				stores.advance(time.Hour)
			}
			want(t, deliver(nil), inbox.Result{Decision: inbox.Ack})
		})
	}
}
