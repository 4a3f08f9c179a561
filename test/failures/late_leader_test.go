package failures_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/storetest"
)

// A leader that is taken over while it runs writes nothing more: its transaction
// rolls back, its heartbeat and its refusal change nothing, and it returns the
// winner's answer.
func lateLeader[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	if by == inline {
		t.Skip("an inline attempt has no lease: its transaction is its right to run")
	}
	if caps, err := w.records().Capabilities(t.Context()); err != nil || caps.Exclusion == store.ExcludesAll {
		t.Skipf("an open transaction blocks all other writers of this store, so that the test cannot take over while it is open (error: %v)", err)
	}
	policy := semel.Atomic()
	if by == outside {
		policy = semel.AtLeastOnce()
	}
	for name, takeEnd := range map[string]error{"completes": nil, "refuses": semel.Final(errors.New("no"))} {
		t.Run(name, func(t *testing.T) {
			call := func(key string, lease time.Duration) semel.Call {
				return semel.Define(w.op("zombie-"+name), semel.OperationOptions[string]{
					Policy: policy, Lease: lease, Heartbeat: lease / 5, Wait: time.Minute,
				}).Call(semel.ScopeOf("ann"), key, "in")
			}
			released := make(chan struct{})
			release := sync.OnceFunc(func() { close(released) })
			defer release()
			type result struct {
				v        string
				replayed bool
				err      error
			}
			key, late := stalledLeader(t, w.Lease/2, name, func(key string, lease time.Duration, enter func()) func() (result, error) {
				return func() (result, error) {
					v, replayed, err := do(t.Context(), w, w.runner, call(key, lease), func(context.Context, func(string) error) (string, error) {
						enter()
						<-released
						return "zombie", takeEnd
					})
					return result{v, replayed, err}, err
				}
			})
			w.faults.Decide(rejectHeartbeats) // no heartbeat reaches the store
			defer w.faults.Decide(nil)
			won := w.takeOver(t, call(key, longLease), key)
			w.faults.Decide(nil)
			release()
			if r := <-late; r.v != won || !r.replayed || r.err != nil {
				t.Errorf("the zombie answered %q, replayed %v, %v, want what the winner said: %q", r.v, r.replayed, r.err, won)
			}
			w.wantEffects(t, "ann/"+key, 1)
		})
	}
}

// stalledLeader starts leaders until the handler of one runs, and returns its key and where its
// result will be. On a slow machine the lease can end before that, so each try has another key
// and twice the lease.
func stalledLeader[R any](t *testing.T, lease time.Duration, name string,
	leader func(key string, lease time.Duration, enter func()) func() (R, error),
) (key string, late <-chan R) {
	t.Helper()
	for ; ; lease *= 2 {
		key := fmt.Sprint(name, "-", lease)
		entered, result, failed := make(chan struct{}), make(chan R, 1), make(chan error, 1)
		lead := leader(key, lease, func() { close(entered) })
		go func() {
			r, err := lead()
			result <- r
			failed <- err
		}()
		select {
		case <-entered:
			return key, result
		case err := <-failed:
			if lease > time.Minute {
				t.Fatalf("the zombie-to-be did not run: %v", err)
			}
		}
	}
}

// rejectHeartbeats rejects changes that do not change the token.
func rejectHeartbeats(c storetest.Call) storetest.Fault {
	if slices.ContainsFunc(c.Changes, func(c store.Change) bool { return c.If == c.To.Token }) {
		return storetest.Refuse()
	}
	return storetest.Fault{}
}

// takeOver runs call in another process, which waits until its leader's lease has
// expired.
func (w *fixture[Tx]) takeOver(t *testing.T, call semel.Call, name string) string {
	t.Helper()
	v, _, err := do(t.Context(), w, w.another(t), call, func(_ context.Context, effect func(string) error) (string, error) {
		return "winner", effect("ann/" + name)
	})
	check.Require(t, err, "the winner")
	return v
}

// Sweepers, purgers and callers at one key agree on one effect.
func sweepAgainstClaim[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	o := w.operation(by)
	if by == leased { // its leases may end on a slow machine, and the callers retry
		o.Lease, o.Heartbeat = w.Lease, w.Lease/3
	}
	op := semel.Define(w.op("swept"), o)
	ctx, stop := context.WithCancel(t.Context())
	var sweepers sync.WaitGroup
	for range 2 {
		sweepers.Go(func() {
			for ctx.Err() == nil {
				_, serr := admin.Sweep(ctx, w.runner, 100)
				_, perr := admin.Purge(ctx, w.runner, 100)
				if err := errors.Join(serr, perr); err != nil && ctx.Err() == nil {
					t.Logf("sweep: %v", err) // the database is busy, which callers must not notice
				}
			}
		})
	}
	for i := range 12 {
		key := fmt.Sprint("k", i)
		call := op.Call(semel.ScopeOf("ann"), key, "in")
		var callers sync.WaitGroup
		for range 2 {
			callers.Go(func() {
				for {
					_, _, err := do(ctx, w, w.runner, call, func(_ context.Context, effect func(string) error) (string, error) {
						return "done", effect("ann/" + key)
					})
					if err == nil {
						return
					}
					// On a slow machine the lease can end before the transaction does.
					free := semel.VerdictOf(err) == store.NotCommitted
					if !free && !errors.Is(err, semel.ErrInProgress) && !errors.Is(err, semel.ErrUnavailable) {
						t.Errorf("%s: %v", key, err)
						return
					}
				}
			})
		}
		callers.Wait()
		w.wantEffects(t, "ann/"+key, 1)
	}
	stop()
	sweepers.Wait()
}
