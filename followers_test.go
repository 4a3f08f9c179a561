package semel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

const crowd = 500

// TestFiveHundredCallersRetryUntilFinal: with Wait 0 every follower is answered at
// once, and retries after the given time.
func TestFiveHundredCallersRetryUntilFinal(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, call := soloCall(t, d.o)
		var runs counted
		slow := runs.of(takes(3 * time.Second))
		var callers []<-chan answer
		for range crowd {
			callers = append(callers, later(func() answer { return untilFinal(t, p, d, call, slow) }))
		}
		wantOneRun(t, callers, &runs)
	})
}

// untilFinal retries after the returned delay while the key is in progress.
func untilFinal(t *testing.T, p *process, d entryPoint, call semel.Call, fn handler) answer {
	for {
		a := d.ask(t.Context(), p, call, fn)
		if semel.RetryAfter(a.err) == 0 {
			return a
		}
		a.wantErr(t, semel.ErrInProgress)
		pass(semel.RetryAfter(a.err))
	}
}

// wantOneRun checks that the function ran for one of the callers, and that all others got its answer.
func wantOneRun(t *testing.T, callers []<-chan answer, runs *counted) {
	t.Helper()
	first := 0
	for _, c := range callers {
		a := <-c
		if !a.replayed {
			first++
		}
		a.want(t, "v", a.replayed)
	}
	runs.want(t, 1)
	check.Equal(t, first, 1, "callers got an answer that is no replay")
}

// TestFiveHundredCallersWait: followers wait for the leader in their process, send
// no store request meanwhile, and receive its answer, also if it takes no lock.
func TestFiveHundredCallersWait(t *testing.T) {
	points := entryPoints()
	without := points["inline"]
	without.o = optimistic()
	points["optimistic"] = without
	eachInBubble(t, points, func(t *testing.T, d entryPoint) {
		p, call := soloWith(t, semel.Options{Wait: time.Hour}, d.o)
		var runs counted
		finish := make(chan struct{})
		held := runs.of(until(finish))
		var callers []<-chan answer
		for range crowd {
			callers = append(callers, later(func() answer { return d.ask(t.Context(), p, call, held) }))
		}
		synctest.Wait()
		now, most := p.faults.Open()
		if inTx := d.name != "Do"; inTx != (now == 1) || most > 1 {
			t.Errorf("%d calls of the store are under way, and were %d at most; want none but the leader's transaction", now, most)
		}
		close(finish)
		wantOneRun(t, callers, &runs)
		if n := p.faults.Calls(); n > 4 {
			t.Errorf("%d calls of the store, want at most New's, claim, transaction and end", n)
		}
	})
}

// eachFollower runs test for each entry point, with a follower in the leader's process and
// with one in another process.
func eachFollower(t *testing.T, o semel.Options, test func(t *testing.T, d entryPoint, leader, follower *process)) {
	t.Helper()
	where := map[string]bool{"of the leader's process": false, "of another process": true}
	eachPair(t, entryPoints(), where, func(t *testing.T, d entryPoint, elsewhere bool) {
		leader, other, _ := pair(t, o)
		if elsewhere {
			test(t, d, leader, other)
		} else {
			test(t, d, leader, leader)
		}
	})
}

// TestWaitersAreBounded: a caller above the limit is answered at once.
func TestWaitersAreBounded(t *testing.T) {
	eachFollower(t, semel.Options{Wait: time.Minute, MaxWaiters: 3}, func(t *testing.T, d entryPoint, leader, follower *process) {
		call := plain("op", d.o).Call(me, "k", "in")
		finish := make(chan struct{})
		first := d.later(t, leader, call, until(finish))
		began := time.Now()
		answers := make(chan answer, 10)
		for range 10 {
			go func() { answers <- d.ask(t.Context(), follower, call, never(t)) }()
		}
		for range 7 {
			(<-answers).wantErr(t, semel.ErrInProgress)
		}
		check.Equal(t, time.Since(began), 0, "callers without a place were answered after")
		pass(time.Second)
		close(finish)
		for range 3 {
			(<-answers).want(t, "v", true)
		}
		(<-first).want(t, "v", false)
		// The places are free again.
		d.ask(t.Context(), follower, call, never(t)).want(t, "v", true)
	})
}

// TestWaitEnds after the configured time, with a retry-after.
func TestWaitEnds(t *testing.T) {
	eachFollower(t, semel.Options{Wait: 8 * time.Second}, func(t *testing.T, d entryPoint, leader, follower *process) {
		call := plain("op", d.o).Call(me, "k", "in")
		d.ask(t.Context(), leader, call, func(context.Context) (string, error) {
			began := time.Now()
			a := d.ask(t.Context(), follower, call, never(t))
			a.wantErr(t, semel.ErrInProgress)
			check.Equal(t, time.Since(began), 8*time.Second, "the follower waited")
			if semel.RetryAfter(a.err) <= 0 {
				t.Error("RetryAfter is zero")
			}
			return "v", nil
		}).want(t, "v", false)
	})
}

// TestWaitIsPerCaller: a later caller continues to wait after the wait of the first
// one ends.
func TestWaitIsPerCaller(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, mem := solo(t, semel.Options{})
		other := start(t, mem, semel.Options{Wait: time.Minute})
		call := plain("op", d.o).Call(me, "k", "in")
		leader := d.later(t, p, call, takes(100*time.Second))
		early := d.later(t, other, call, never(t))
		pass(50 * time.Second)
		late := d.later(t, other, call, never(t))
		(<-early).wantErr(t, semel.ErrInProgress)
		(<-late).want(t, "v", true)
		(<-leader).want(t, "v", false)
	})
}

// TestWaitAcrossProcesses polls until the leader has an outcome.
func TestWaitAcrossProcesses(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, mem := solo(t, semel.Options{})
		other := start(t, mem, semel.Options{Wait: time.Hour})
		call := plain("op", d.o).Call(me, "k", "in")
		leader := d.later(t, p, call, takes(time.Minute))
		began := time.Now()
		d.ask(t.Context(), other, call, never(t)).want(t, "v", true)
		if took := time.Since(began); took < time.Minute || took > time.Minute+2*time.Second {
			t.Errorf("got the answer after %v, want soon after the minute it took", took)
		}
		if n := other.faults.CallsOf("Get") + other.faults.CallsOf("Atomic"); n > 300 {
			t.Errorf("polled %d times in a minute, want it to slow down", n)
		}
		(<-leader).want(t, "v", false)
	})
}

// TestRetryAfterScalesWithTheAgeOfTheClaim, within bounds.
func TestRetryAfterScalesWithTheAgeOfTheClaim(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, other, call := pairCall(t, d.o)
		d.ask(t.Context(), p, call, func(context.Context) (string, error) {
			began := time.Now()
			for _, age := range []time.Duration{0, 10 * time.Second, 10*time.Minute + 5*time.Second} {
				pass(age - time.Since(began))
				for name, p := range map[string]*process{"the same process": p, "another": other} {
					a := d.ask(t.Context(), p, call, never(t))
					a.wantErr(t, semel.ErrInProgress)
					want := min(max(age/2, 200*time.Millisecond), 30*time.Second)
					switch {
					case d.name == "inline" && p == other:
						want = 200 * time.Millisecond // the claim cannot be seen
					case p == other:
						want = min(want, 25*time.Second) // the lease of 30 s was renewed 5 s ago
					}
					check.Equal(t, semel.RetryAfter(a.err), want, "at %v %s says", age, name)
				}
			}
			return "v", nil
		}).want(t, "v", false)
	})
}

func TestFollowersReceiveTheLeadersAnswer(t *testing.T) {
	type row struct {
		fn    func(p *process) handler
		check func(t *testing.T, a answer)
	}
	tests := map[string]row{
		"success":      {func(*process) handler { return returns("v") }, func(t *testing.T, a answer) { a.want(t, "v", true) }},
		"failure":      {func(*process) handler { return fails(semel.Final(errBoom)) }, func(t *testing.T, a answer) { a.wantFailure(t, "boom") }},
		"doubt":        {func(*process) handler { return fails(errBoom) }, func(t *testing.T, a answer) { a.wantErr(t, semel.ErrInDoubt) }},
		"late success": {func(p *process) handler { return outageAfter(p, "v", fault{Before: errCut}) }, func(t *testing.T, a answer) { a.want(t, "v", true) }},
		"no answer": {
			func(p *process) handler {
				return func(context.Context) (string, error) { p.crash(); return "", semel.Final(errBoom) }
			},
			func(t *testing.T, a answer) { a.wantErr(t, semel.ErrUnavailable) },
		},
	}
	eachInBubble(t, tests, func(t *testing.T, tt row) {
		p, _ := solo(t, semel.Options{Wait: time.Hour})
		var followers []<-chan answer
		do(t.Context(), p, theCall, func(ctx context.Context) (string, error) {
			for range 20 {
				followers = append(followers, later(func() answer { return do(t.Context(), p, theCall, never(t)) }))
			}
			synctest.Wait()
			return tt.fn(p)(ctx)
		})
		for _, f := range followers {
			tt.check(t, <-f)
		}
	})
}

// TestFollowersLeadAfterARelease: one of them becomes the next leader.
func TestFollowersLeadAfterARelease(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, call := soloWith(t, semel.Options{Wait: time.Hour}, d.o)
		var runs counted
		fn := runs.of(func(context.Context) (string, error) {
			pass(time.Second)
			return "", semel.NotCommitted(errBoom)
		})
		var callers []<-chan answer
		for range 10 {
			callers = append(callers, later(func() answer { return d.ask(t.Context(), p, call, fn) }))
		}
		for _, c := range callers {
			(<-c).wantErr(t, errBoom)
		}
		runs.want(t, 10)
		if d.name != "inline" {
			check.Equal(t, wantState(t, p.mem, call, store.Pending).Attempt, 10, "attempt: was released (one after the other)")
		}
	})
}

func TestFollowersWaitForADueTime(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, mem := solo(t, semel.Options{})
		patient := start(t, mem, semel.Options{Wait: time.Minute})
		call := plain("op", queueable(d.o)).Call(me, "k", "in")
		enqueue(t, p, mem, call, 10*time.Second)
		a := d.ask(t.Context(), p, call, never(t))
		a.wantErr(t, semel.ErrInProgress)
		check.Equal(t, semel.RetryAfter(a.err), 10*time.Second, "RetryAfter (until it is due)")
		began := time.Now()
		d.ask(t.Context(), patient, call, returns("v")).want(t, "v", false)
		if took := time.Since(began); took < 10*time.Second {
			t.Errorf("it ran after %v, want not before it was due", took)
		}
	})
}

// TestFollowersShareInProgress: the leader's key is in progress in another
// process. Its followers receive the same answer.
func TestFollowersShareInProgress(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, other, call := pairCall(t, d.o)
		d.ask(t.Context(), p, call, func(context.Context) (string, error) {
			gate := make(chan struct{})
			other.faults.Decide(func(request) fault { return fault{Gate: gate} })
			var callers []<-chan answer
			for range 10 {
				callers = append(callers, d.later(t, other, call, never(t)))
			}
			gone, hangUp := context.WithCancel(t.Context())
			left := blocked(func() answer { return d.ask(gone, other, call, never(t)) })
			hangUp()
			(<-left).wantErr(t, context.Canceled)
			close(gate)
			for _, c := range callers {
				(<-c).wantErr(t, semel.ErrInProgress)
			}
			if n := other.faults.Calls(); n > 1 {
				t.Errorf("the store was called %d times, want one answer for all", n)
			}
			return "v", nil
		}).want(t, "v", false)
	})
}

// TestPollingEnds when the store fails.
func TestPollingEnds(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, mem := solo(t, semel.Options{})
		other := start(t, mem, semel.Options{Wait: time.Hour})
		call := plain("op", d.o).Call(me, "k", "in")
		d.ask(t.Context(), p, call, func(context.Context) (string, error) {
			time.AfterFunc(5*time.Second, other.crash)
			d.ask(t.Context(), other, call, never(t)).wantErr(t, semel.ErrUnavailable)
			return "v", nil
		}).want(t, "v", false)
	})
}
