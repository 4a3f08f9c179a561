package semel_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

const crowd = 500

// TestFiveHundredCallersRetryUntilFinal: with Wait 0 every follower is answered at
// once, and retries after the given time.
func TestFiveHundredCallersRetryUntilFinal(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, _ := solo(t, semel.Options{})
		call := plain("op", d.o).Call(me, "k", "in")
		var runs counted
		slow := runs.of(func(context.Context) (string, error) { pass(3 * time.Second); return "v", nil })
		var callers []<-chan answer
		for range crowd {
			callers = append(callers, later(func() answer { return untilFinal(t, p, d, call, slow) }))
		}
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

// TestFiveHundredCallersWait: followers wait for the leader in their process, send
// no store request meanwhile, and receive its answer.
func TestFiveHundredCallersWait(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, _ := solo(t, semel.Options{Wait: time.Hour})
		call := plain("op", d.o).Call(me, "k", "in")
		var runs counted
		finish := make(chan struct{})
		held := runs.of(func(context.Context) (string, error) { <-finish; return "v", nil })
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
		first := 0
		for _, c := range callers {
			a := <-c
			if !a.replayed {
				first++
			}
			a.want(t, "v", a.replayed)
		}
		runs.want(t, 1)
		if n := p.faults.Calls(); first != 1 || n > 4 {
			t.Errorf("%d first answers and %d calls of the store, want one and at most New's, claim, transaction and end", first, n)
		}
	})
}

// TestWaitersAreBounded: a caller above the limit is answered at once.
func TestWaitersAreBounded(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"of the leader's process", "of another process"} {
		t.Run(where, func(t *testing.T) {
			eachEntryPoint(t, func(t *testing.T, d entryPoint) {
				mem := memory.New(memory.Options{})
				leader := start(t, mem, semel.Options{Wait: time.Minute, MaxWaiters: 3})
				follower := leader
				if where == "of another process" {
					follower = start(t, mem, semel.Options{Wait: time.Minute, MaxWaiters: 3})
				}
				call := plain("op", d.o).Call(me, "k", "in")
				finish := make(chan struct{})
				first := later(func() answer {
					return d.ask(t.Context(), leader, call, func(context.Context) (string, error) { <-finish; return "v", nil })
				})
				synctest.Wait()
				began := time.Now()
				answers := make(chan answer, 10)
				for range 10 {
					go func() { answers <- d.ask(t.Context(), follower, call, never(t)) }()
				}
				for range 7 {
					(<-answers).wantErr(t, semel.ErrInProgress)
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("those without a place were answered after %v, want at once", took)
				}
				pass(time.Second)
				close(finish)
				for range 3 {
					(<-answers).want(t, "v", true)
				}
				(<-first).want(t, "v", false)
				// The places are free again.
				d.ask(t.Context(), follower, call, never(t)).want(t, "v", true)
			})
		})
	}
}

// TestWaitEnds after the configured time, with a retry-after.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"in one process", "across processes"} {
		t.Run(where, func(t *testing.T) {
			eachEntryPoint(t, func(t *testing.T, d entryPoint) {
				mem := memory.New(memory.Options{})
				p := start(t, mem, semel.Options{Wait: 8 * time.Second})
				other := p
				if where == "across processes" {
					other = start(t, mem, semel.Options{Wait: 8 * time.Second})
				}
				call := plain("op", d.o).Call(me, "k", "in")
				d.ask(t.Context(), p, call, func(ctx context.Context) (string, error) {
					began := time.Now()
					a := d.ask(t.Context(), other, call, never(t))
					a.wantErr(t, semel.ErrInProgress)
					if took := time.Since(began); took != 8*time.Second {
						t.Errorf("waited %v, want 8 s", took)
					}
					if semel.RetryAfter(a.err) <= 0 {
						t.Error("RetryAfter is zero")
					}
					return "v", nil
				}).want(t, "v", false)
			})
		})
	}
}

// TestWaitIsPerCaller: a later caller continues to wait after the wait of the first
// one ends.
func TestWaitIsPerCaller(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		mem := memory.New(memory.Options{})
		p, other := start(t, mem, semel.Options{}), start(t, mem, semel.Options{Wait: time.Minute})
		call := plain("op", d.o).Call(me, "k", "in")
		leader := later(func() answer {
			return d.ask(t.Context(), p, call, func(context.Context) (string, error) { pass(100 * time.Second); return "v", nil })
		})
		synctest.Wait()
		early := later(func() answer { return d.ask(t.Context(), other, call, never(t)) })
		pass(50 * time.Second)
		late := later(func() answer { return d.ask(t.Context(), other, call, never(t)) })
		(<-early).wantErr(t, semel.ErrInProgress)
		(<-late).want(t, "v", true)
		(<-leader).want(t, "v", false)
	})
}

// TestWaitAcrossProcesses polls until the leader has an outcome.
func TestWaitAcrossProcesses(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		mem := memory.New(memory.Options{})
		p, other := start(t, mem, semel.Options{}), start(t, mem, semel.Options{Wait: time.Hour})
		call := plain("op", d.o).Call(me, "k", "in")
		leader := later(func() answer {
			return d.ask(t.Context(), p, call, func(context.Context) (string, error) { pass(time.Minute); return "v", nil })
		})
		synctest.Wait()
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
		mem := memory.New(memory.Options{})
		p, other := start(t, mem, semel.Options{}), start(t, mem, semel.Options{})
		call := plain("op", d.o).Call(me, "k", "in")
		d.ask(t.Context(), p, call, func(context.Context) (string, error) {
			began := time.Now()
			for _, age := range []time.Duration{0, 10 * time.Second, 10 * time.Minute} {
				pass(age - time.Since(began))
				for name, p := range map[string]*process{"the same process": p, "another": other} {
					a := d.ask(t.Context(), p, call, never(t))
					a.wantErr(t, semel.ErrInProgress)
					want := min(max(age/2, 200*time.Millisecond), 30*time.Second)
					if d.name == "inline" && p == other {
						want = 200 * time.Millisecond // the claim cannot be seen
					}
					check.Equal(t, semel.RetryAfter(a.err), want, "at %v %s says", age, name)
				}
			}
			return "v", nil
		}).want(t, "v", false)
	})
}

func TestFollowersReceiveTheLeadersAnswer(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fn    func(p *process) handler
		check func(t *testing.T, a answer)
	}{
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
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, _ := solo(t, semel.Options{Wait: time.Hour})
				call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
				var followers []<-chan answer
				do(t.Context(), p, call, func(ctx context.Context) (string, error) {
					for range 20 {
						followers = append(followers, later(func() answer { return do(t.Context(), p, call, never(t)) }))
					}
					synctest.Wait()
					return tt.fn(p)(ctx)
				})
				for _, f := range followers {
					tt.check(t, <-f)
				}
				p.faults.Decide(nil)
			})
		})
	}
}

// TestFollowersLeadAfterARelease: one of them becomes the next leader.
func TestFollowersLeadAfterARelease(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, mem := solo(t, semel.Options{Wait: time.Hour})
		call := plain("op", d.o).Call(me, "k", "in")
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
			check.Equal(t, wantState(t, mem, call, store.Pending).Attempt, 10, "attempt: was released (one after the other)")
		}
	})
}

func TestKeysAreIndependent(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, _ := solo(t, semel.Options{Wait: time.Hour})
		op := plain("op", d.o)
		finish := make(chan struct{})
		held := later(func() answer {
			return d.ask(t.Context(), p, op.Call(me, "held", "in"), func(context.Context) (string, error) { <-finish; return "v", nil })
		})
		synctest.Wait()
		for i := range 20 {
			d.ask(t.Context(), p, op.Call(me, fmt.Sprint(i), "in"), returns("v")).want(t, "v", false)
			d.ask(t.Context(), p, op.Call(semel.ScopeOf(fmt.Sprint(i)), "held", "in"), returns("v")).want(t, "v", false)
		}
		close(finish)
		(<-held).want(t, "v", false)
	})
}

func TestFollowersWaitForADueTime(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		mem := memory.New(memory.Options{})
		p, patient := start(t, mem, semel.Options{}), start(t, mem, semel.Options{Wait: time.Minute})
		call := plain("op", queueable(d.o)).Call(me, "k", "in")
		enqueue(t, p, mem, call, 10*time.Second)
		a := d.ask(t.Context(), p, call, never(t))
		a.wantErr(t, semel.ErrInProgress)
		if got := semel.RetryAfter(a.err); got != 10*time.Second {
			t.Errorf("RetryAfter = %v, want until it is due", got)
		}
		began := time.Now()
		d.ask(t.Context(), patient, call, returns("v")).want(t, "v", false)
		if took := time.Since(began); took < 10*time.Second {
			t.Errorf("it ran after %v, want not before it was due", took)
		}
	})
}
