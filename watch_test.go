package semel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/plainstore"
	"github.com/semelgo/semel/store"
)

// TestWaitEndsWithTheChange: over a store that watches, a caller that waits for another
// process is answered at the moment when that one ends. Otherwise it polls.
func TestWaitEndsWithTheChange(t *testing.T) {
	t.Parallel()
	const runs = 3300 * time.Millisecond
	for name, watches := range map[string]bool{"watched": true, "polled": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				plain := plainstore.New(plainstore.Options{})
				s := store.Store(plain)
				if !watches {
					s = plain.Bare()
				}
				var engines [2]semel.Runner
				for i := range engines {
					engines[i] = check.Must(semel.NewRunner(s, semel.Options{Survive: store.NoFailure, Wait: time.Hour}))(t)
				}
				call := semel.Define("op", semel.OperationOptions[string]{}).Call(semel.Shared(), "k", "in")
				begun, answered := time.Now(), make(chan time.Duration, 2)
				for i, engine := range engines {
					go func() {
						v, replayed, err := semel.Do(t.Context(), engine, call, func(context.Context) (string, error) {
							pass(runs)
							return "v", nil
						})
						if v != "v" || replayed != (i == 1) || err != nil {
							t.Errorf("caller %d: %q, replayed %v, %v", i, v, replayed, err)
						}
						answered <- time.Since(begun)
					}()
					synctest.Wait()
				}
				check.Equal(t, <-answered, runs, "the time of the first caller")
				if after := <-answered; (after == runs) != watches {
					t.Errorf("the other caller was answered after %v, want at the same time: %v", after, watches)
				}
				for _, engine := range engines {
					check.NoError(t, engine.Close(t.Context()))
				}
			})
		})
	}
}
