package protocol_test

import (
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// TestRetryAfter: a caller waits longer for an older attempt, and not longer than until
// another attempt may begin.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		state            store.State
		since, due, want time.Duration
	}{
		"young":                 {store.InProgress, 100 * time.Millisecond, 30 * time.Second, 200 * time.Millisecond},
		"half the age":          {store.InProgress, 8 * time.Second, 30 * time.Second, 4 * time.Second},
		"the lease ends before": {store.InProgress, 29 * time.Second, time.Second, time.Second},
		"the lease has ended":   {store.InProgress, 29 * time.Second, -time.Second, 200 * time.Millisecond},
		"heartbeats for long":   {store.InProgress, time.Hour, time.Minute, 30 * time.Second},
		"due in 5 s":            {store.Pending, time.Hour, 5 * time.Second, 5 * time.Second},
	} {
		got := protocol.RetryAfter(store.Record{Token: store.Token{State: test.state}, Since: test.since, Due: test.due})
		check.Equal(t, got, test.want, "%s", name)
	}
}
