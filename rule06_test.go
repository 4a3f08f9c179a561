package semel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
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

func entryPoints() []entryPoint {
	all := []entryPoint{{name: "Do", ask: do}}
	for _, s := range txModes() {
		all = append(all, entryPoint{s.name, s.o, func(ctx context.Context, p *process, c semel.Call, fn handler) answer {
			return s.ask(ctx, p, c, func(ctx context.Context, _ *memory.Tx) (string, error) { return fn(ctx) })
		}})
	}
	return all
}

func eachEntryPoint(t *testing.T, test func(t *testing.T, d entryPoint)) {
	t.Helper()
	t.Parallel()
	for _, d := range entryPoints() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, d) })
		})
	}
}

func TestRule06CancelBeforeTheCall(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, mem := solo(t, semel.Options{})
		call := plain("op", d.o).Call(me, "k", "in")
		ctx, hangUp := context.WithCancel(t.Context())
		hangUp()
		d.ask(ctx, p, call, never(t)).wantErr(t, context.Canceled)
		wantState(t, mem, call, store.Absent)
	})
}

func TestRule06CancelInTheHandler(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, mem := solo(t, semel.Options{})
		call := plain("op", d.o).Call(me, "k", "in")
		ctx, hangUp := context.WithCancel(t.Context())
		d.ask(ctx, p, call, func(ctx context.Context) (string, error) {
			hangUp()
			<-ctx.Done()
			return "v", nil
		}).want(t, "v", false)
		wantState(t, mem, call, store.Succeeded)
		d.ask(t.Context(), p, call, never(t)).want(t, "v", true)
	})
}

// TestRule06CancelWhileTheOutcomeIsRecorded: the running write continues.
func TestRule06CancelWhileTheOutcomeIsRecorded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		ctx, hangUp := context.WithCancel(t.Context())
		gate := make(chan struct{})
		p.faults.Decide(func(r request) fault {
			if r.To() == store.Succeeded {
				return fault{Gate: gate}
			}
			return fault{}
		})
		leader := later(func() answer { return do(ctx, p, call, returns("v")) })
		synctest.Wait()
		hangUp()
		synctest.Wait()
		close(gate)
		(<-leader).want(t, "v", false)
		wantState(t, mem, call, store.Succeeded)
	})
}

// TestRule06CancelWhileTheCommitIsAmbiguous: the certificate is written all the
// same.
func TestRule06CancelWhileTheCommitIsAmbiguous(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		p, _ := solo(t, semel.Options{})
		call := plain("op", s.o).Call(me, "k", "in")
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
		p, _ := solo(t, semel.Options{RecordTimeout: 2 * time.Second})
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		var returned time.Time
		do(t.Context(), p, call, func(context.Context) (string, error) {
			p.hang()
			returned = time.Now()
			return "v", nil
		}).want(t, "v", false)
		if took := time.Since(returned); took != 2*time.Second {
			t.Errorf("recording took %v, want RecordTimeout", took)
		}
		p.faults.Decide(nil)
	})
}

// TestRule06CancelDuringTheClaim: nothing was run, so the claim that may have
// been granted is given back, and the key waits for no lease.
func TestRule06CancelDuringTheClaim(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"not granted": {Hang: true}, "granted": {Mute: true}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, mem := solo(t, semel.Options{})
				call := plain("op", semel.OperationOptions[string]{Retention: time.Hour}).Call(me, "k", "in")
				p.faults.Decide(func(r request) fault {
					if r.MethodN == 1 {
						return f
					}
					return fault{}
				})
				ctx, hangUp := context.WithCancel(t.Context())
				caller := later(func() answer { return do(ctx, p, call, never(t)) })
				synctest.Wait()
				hangUp()
				(<-caller).wantErr(t, semel.ErrUnavailable, context.Canceled)
				synctest.Wait()
				// Pending also where nothing was granted: so it cannot be later.
				if r := wantState(t, mem, call, store.Pending); r.Expire != time.Hour {
					t.Errorf("what is given back expires in %v, want the operation's retention", r.Expire)
				}
				p.seen.wantNone(t, event.Late, event.LateRecorded) // no event is emitted
				do(t.Context(), p, call, returns("v")).want(t, "v", false)
			})
		})
	}
}

// TestRule06CancelOfAFollower: the leader and the other followers do not notice.
func TestRule06CancelOfAFollower(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, _ := solo(t, semel.Options{Wait: time.Hour})
		call := plain("op", d.o).Call(me, "k", "in")
		finish := make(chan struct{})
		leader := later(func() answer {
			return d.ask(t.Context(), p, call, func(context.Context) (string, error) { <-finish; return "v", nil })
		})
		synctest.Wait()
		ctx, hangUp := context.WithCancel(t.Context())
		gone := later(func() answer { return d.ask(ctx, p, call, never(t)) })
		stays := later(func() answer { return d.ask(t.Context(), p, call, never(t)) })
		synctest.Wait()
		hangUp()
		(<-gone).wantErr(t, context.Canceled)
		close(finish)
		(<-leader).want(t, "v", false)
		(<-stays).want(t, "v", true)
	})
}

// TestRule06CancelOfTheCallerThatSendsTheClaim: followers that arrived meanwhile do
// not share the cancellation of the first caller.
func TestRule06CancelOfTheCallerThatSendsTheClaim(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, _ := solo(t, semel.Options{})
		call := plain("op", d.o).Call(me, "k", "in")
		asked := false
		p.faults.Decide(func(request) fault {
			defer func() { asked = true }()
			return fault{Hang: !asked}
		})
		ctx, hangUp := context.WithCancel(t.Context())
		first := later(func() answer { return d.ask(ctx, p, call, never(t)) })
		synctest.Wait()
		second := later(func() answer { return d.ask(t.Context(), p, call, returns("v")) })
		synctest.Wait()
		hangUp()
		(<-first).wantErr(t, semel.ErrUnavailable)
		(<-second).want(t, "v", false)
	})
}

// TestRule06StoreOutageIsReportedToAllFollowers: the followers of a caller that
// found the store unavailable get the same error.
func TestRule06StoreOutageIsReportedToAllFollowers(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, _ := solo(t, semel.Options{})
		call := plain("op", d.o).Call(me, "k", "in")
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
