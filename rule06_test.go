package semel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// Rule 6: outcomes are recorded independently of the caller's context, with a time
// limit of their own. A caller that hangs up changes nothing.

// entryPoint is a function that callers use to run an operation.
type entryPoint struct {
	name string
	o    semel.OperationOptions[string]
	ask  func(ctx context.Context, p *process, c semel.Call, fn handler) answer
}

func entryPoints() map[string]entryPoint {
	all := map[string]entryPoint{"Do": {name: "Do", ask: do}}
	for _, s := range txModes() {
		all[s.name] = entryPoint{s.name, s.o, func(ctx context.Context, p *process, c semel.Call, fn handler) answer {
			return s.ask(ctx, p, c, func(ctx context.Context, _ *memory.Tx) (string, error) { return fn(ctx) })
		}}
	}
	return all
}

// through runs fn by the entry point d, for a result of any type.
func through[T any](ctx context.Context, p *process, d entryPoint, c semel.Call, fn func(context.Context) (T, error)) (T, bool, error) {
	fnTx := func(ctx context.Context, _ *memory.Tx) (T, error) { return fn(ctx) }
	switch d.name {
	case "Do":
		return semel.Do(ctx, p, c, fn)
	case "InTx":
		return semel.Do(ctx, p, c, func(ctx context.Context) (T, error) { return semel.InTx(ctx, p.Engine, fnTx) })
	case "DoBatch":
		return semel.DoBatch(ctx, p.Engine, c, func(ctx context.Context) (T, memory.Batch, error) {
			v, err := fn(ctx)
			return v, nil, err
		})
	default:
		return semel.DoTx(ctx, p.Engine, c, fnTx)
	}
}

func eachEntryPoint(t *testing.T, test func(t *testing.T, d entryPoint)) {
	t.Helper()
	eachInBubble(t, entryPoints(), test)
}

// hangUp returns a context, and the function with which its caller hangs up.
type hangUp = func(t *testing.T) (context.Context, context.CancelFunc)

// hangUps are the ways to hang up: the context ends, or only the wait of an adapter's caller does.
func hangUps() map[string]hangUp {
	return map[string]hangUp{
		"context": func(t *testing.T) (context.Context, context.CancelFunc) { return context.WithCancel(t.Context()) },
		"wait":    hangUpCall,
	}
}

func TestRule06CancelBeforeTheCall(t *testing.T) {
	eachPair(t, entryPoints(), hangUps(), func(t *testing.T, d entryPoint, caller hangUp) {
		p, call := soloCall(t, d.o)
		ctx, hangUp := caller(t)
		hangUp()
		d.ask(ctx, p, call, never(t)).wantErr(t, context.Canceled)
		wantState(t, p.mem, call, store.Absent)
		d.ask(t.Context(), p, call, returns("v")).want(t, "v", false)
	})
}

func TestRule06CancelInTheHandler(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, call := soloCall(t, d.o)
		ctx, hangUp := context.WithCancel(t.Context())
		d.ask(ctx, p, call, func(ctx context.Context) (string, error) {
			hangUp()
			<-ctx.Done()
			return "v", nil
		}).want(t, "v", false)
		wantState(t, p.mem, call, store.Succeeded)
		d.ask(t.Context(), p, call, never(t)).want(t, "v", true)
	})
}

// TestRule06CancelWhileTheOutcomeIsRecorded: the running write continues.
func TestRule06CancelWhileTheOutcomeIsRecorded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, call := soloCall(t, semel.OperationOptions[string]{})
		ctx, hangUp := context.WithCancel(t.Context())
		gate := make(chan struct{})
		p.faults.Decide(failTo(store.Succeeded, fault{Gate: gate}))
		leader := blocked(func() answer { return do(ctx, p, call, returns("v")) })
		hangUp()
		synctest.Wait()
		close(gate)
		(<-leader).want(t, "v", false)
		wantState(t, p.mem, call, store.Succeeded)
	})
}

// TestRule06CancelWhileTheCommitIsAmbiguous: the certificate is written all the
// same.
func TestRule06CancelWhileTheCommitIsAmbiguous(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		p, call := soloCall(t, s.o)
		p.faults.Decide(commits(commitApplied()))
		ctx, hangUp := context.WithCancel(t.Context())
		s.ask(ctx, p, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
			hangUp()
			return puts("e", "v")(ctx, tx)
		}).want(t, "v", false)
	})
}

// TestRule06RecordingHasABound: a caller waits for the record no longer than
// RecordTimeout.
func TestRule06RecordingHasABound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, call := soloWith(t, semel.Options{RecordTimeout: 2 * time.Second}, semel.OperationOptions[string]{})
		var returned time.Time
		do(t.Context(), p, call, func(context.Context) (string, error) {
			p.hang()
			returned = time.Now()
			return "v", nil
		}).want(t, "v", false)
		check.Equal(t, time.Since(returned), 2*time.Second, "it took")
	})
}

// TestRule06CancelDuringTheClaim: nothing was run, so the claim that may have
// been granted is given back, and the key waits for no lease.
func TestRule06CancelDuringTheClaim(t *testing.T) {
	type row struct {
		found existingState
		claim fault
	}
	eachInBubble(t, map[string]row{
		"not granted": {nothing, fault{Hang: true}}, "granted": {nothing, fault{Mute: true}}, "takeover, granted": {expired, fault{Mute: true}},
	}, func(t *testing.T, tt row) {
		p, call := soloCall(t, semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Retention: time.Hour})
		createExisting(t, p.mem, call, tt.found)
		before := record(t, p.mem, call).Token
		p.faults.Decide(failIf(tt.claim, func(r request) bool { return r.To() == store.InProgress && r.Changes[0].If == before }))
		ctx, hangUp := context.WithCancel(t.Context())
		caller := blocked(func() answer { return do(ctx, p, call, never(t)) })
		hangUp()
		(<-caller).wantErr(t, semel.ErrUnavailable, context.Canceled)
		synctest.Wait()
		// Pending also where nothing was granted: so it cannot be later.
		check.Equal(t, wantState(t, p.mem, call, store.Pending).Expire, time.Hour, "it expires in")
		p.seen.wantNone(t, event.Late, event.LateRecorded) // no event is emitted
		p.faults.Decide(nil)
		do(t.Context(), p, call, returns("v")).want(t, "v", false)
	})
}

// TestRule06CancelOfAFollower: it leaves at once and alone. The leader and the other followers do
// not notice.
func TestRule06CancelOfAFollower(t *testing.T) {
	eachFollower(t, semel.Options{Wait: time.Hour}, func(t *testing.T, d entryPoint, leader, follower *process) {
		for name, caller := range hangUps() {
			call := plain("op", d.o).Call(me, name, "in")
			finish := make(chan struct{})
			first := d.later(t, leader, call, until(finish))
			ctx, hangUp := caller(t)
			leaves := blocked(func() answer { return d.ask(ctx, follower, call, never(t)) })
			stays := d.later(t, follower, call, never(t))
			pass(time.Minute)
			began := time.Now()
			hangUp()
			(<-leaves).wantErr(t, context.Canceled)
			check.Equal(t, time.Since(began), 0, "it left after its caller by")
			close(finish)
			(<-first).want(t, "v", false)
			(<-stays).want(t, "v", true)
		}
	})
}

// TestRule06CancelOfTheCallerThatSendsTheClaim: followers that arrived meanwhile do not
// share the cancellation of the first caller. One of them sends the request in its place.
func TestRule06CancelOfTheCallerThatSendsTheClaim(t *testing.T) {
	eachPair(t, entryPoints(), hangUps(), func(t *testing.T, d entryPoint, caller hangUp) {
		p, call := soloCall(t, d.o)
		p.faults.Decide(failCall(1, fault{Hang: true}))
		ctx, hangUp := caller(t)
		first := blocked(func() answer { return d.ask(ctx, p, call, never(t)) })
		second := d.later(t, p, call, returns("v"))
		hangUp()
		(<-first).wantErr(t, semel.ErrUnavailable)
		(<-second).want(t, "v", false)
	})
}

// TestRule06StoreOutageIsReportedToAllFollowers: the followers of a caller that
// found the store unavailable get the same error.
func TestRule06StoreOutageIsReportedToAllFollowers(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, call := soloCall(t, d.o)
		gate := make(chan struct{})
		p.faults.Decide(func(request) fault { return fault{Gate: gate, Before: errCut} })
		var callers []<-chan answer
		for range 10 {
			callers = append(callers, later(func() answer { return d.ask(t.Context(), p, call, never(t)) }))
		}
		synctest.Wait()
		close(gate)
		for _, c := range callers {
			a := <-c
			a.wantErr(t, semel.ErrUnavailable)
			if semel.RetryAfter(a.err) != time.Second || semel.VerdictOf(a.err) != store.Unknown || errors.Is(a.err, semel.ErrInvalid) {
				t.Errorf("got %v, want a RetryAfter of a second", a.err)
			}
		}
	})
}
