package onetime_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/onetime"
)

// openTokensAreLimited: concurrent callers, of two processes, get as many tokens of one
// subject as are allowed. A token that was used, or whose time is over, makes room for
// another one. Other subjects have tokens of their own.
func openTokensAreLimited(t *testing.T, r *rig, w way) {
	t.Helper()
	limited := onetime.Define[int]("limited@"+w.name, onetime.Options{MaxOpen: 3})
	issue := func(e semel.Runner, subject string, ttl time.Duration) (token string, err error) {
		_ = realtest.Retry(t.Context(), func() bool {
			token, err = limited.Issue(t.Context(), e, semel.ScopeOf(subject), ttl, 7)
			return !errors.Is(err, semel.ErrInProgress) // many callers at once
		})
		return token, err
	}
	var mu sync.Mutex
	var tokens []string
	var refused atomic.Int32
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			token, err := issue(r.engines[i%2], "ann", time.Hour)
			switch {
			case err == nil:
				mu.Lock()
				tokens = append(tokens, token)
				mu.Unlock()
			case errors.Is(err, onetime.ErrTooMany):
				refused.Add(1)
			default:
				t.Errorf("Issue: %v", err)
			}
		})
	}
	all.Wait()
	if len(tokens) != 3 || refused.Load() != 13 {
		t.Fatalf("%d tokens and %d refusals, want 3 and 13", len(tokens), refused.Load())
	}
	if _, err := issue(r.engines[0], "bob", time.Hour); err != nil {
		t.Errorf("Issue for another subject: %v", err)
	}
	for i, token := range tokens {
		v, _, err := onetime.Consume(t.Context(), limited, r.engines[0], semel.ScopeOf("ann"), token, func(_ context.Context, n int) (int, error) { return n + i, nil })
		check.Result(v, err)(t, 7+i, "Consume")
	}
	for range 3 { // the used tokens make room; these expire at once
		if _, err := issue(r.engines[1], "ann", time.Nanosecond); err != nil {
			t.Errorf("Issue after all tokens were used: %v", err)
		}
	}
	if _, err := issue(r.engines[0], "ann", time.Hour); err != nil {
		t.Errorf("Issue after all tokens have expired: %v", err)
	}
	if _, found, err := admin.Get(t.Context(), r.engines[0], "limited@"+w.name, semel.ScopeOf("cid"), "open"); found || err != nil {
		t.Errorf("a subject without tokens has a list, %v", err)
	}
}
