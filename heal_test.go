package semel_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// domain is where effects can be looked for, with what a look costs.
type domain struct {
	mu     sync.Mutex
	done   map[string]string
	err    error
	probes int
}

func (d *domain) effect(key, v string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		d.done = make(map[string]string)
	}
	d.done[key] = v
}

func (d *domain) probe(_ context.Context, _ semel.Scope, key string) (any, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.probes++
	v, found := d.done[key]
	return v, found, d.err
}

func (d *domain) op() *semel.Operation[string] {
	return plain("op", semel.OperationOptions[string]{Policy: semel.Heal(d.probe)})
}

// TestHealByAFollower, while the leader still runs: it learns that it lost, and
// answers with the healed bytes.
func TestHealByAFollower(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"of the leader's process", "of another process"} {
		t.Run(where, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mem := memory.New(memory.Options{})
				p := start(t, mem, semel.Options{})
				follower := p
				if where == "of another process" {
					follower = start(t, mem, semel.Options{})
				}
				d := new(domain)
				call := d.op().Call(me, "k", "in")
				do(t.Context(), p, call, func(context.Context) (string, error) {
					d.effect("k", "what the domain says")
					do(t.Context(), follower, call, never(t)).want(t, "what the domain says", true)
					return "what the leader says", nil
				}).want(t, "what the domain says", true)
				follower.seen.want(t, event.Healed)
				p.seen.want(t, event.Fenced)
				p.seen.wantNone(t, event.Conflict)
				do(t.Context(), p, call, never(t)).want(t, "what the domain says", true)
				if r := record(t, mem, call); r.Attempt != 1 || r.Expire != 24*time.Hour {
					t.Errorf("attempt %d, to expire in %v; want 1, in the retention", r.Attempt, r.Expire)
				}
			})
		})
	}
}

// TestHealLooksBeforeItWaits: also a follower that would wait looks first.
func TestHealLooksBeforeItWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		d := new(domain)
		call := d.op().Call(me, "k", "in")
		claimAndCrash(t, start(t, mem, semel.Options{}), call)
		p := start(t, mem, semel.Options{Wait: time.Hour})
		began := time.Now()
		time.AfterFunc(12*time.Second, func() { d.effect("k", "v") })
		do(t.Context(), p, call, never(t)).want(t, "v", true)
		if took := time.Since(began); took < 12*time.Second || took > 14*time.Second {
			t.Errorf("healed after %v, want soon after the evidence came", took)
		}
	})
}

// TestHealFindsNothing: that proves nothing. It is never Failed and never run
// again; once the lease is over it is in doubt until evidence turns up.
func TestHealFindsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		d := new(domain)
		call := d.op().Call(me, "k", "in")
		claimAndCrash(t, start(t, mem, semel.Options{}), call)
		p := start(t, mem, semel.Options{})
		for range 3 {
			do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrInProgress)
		}
		pass(lease)
		for range 3 {
			do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrInDoubt)
		}
		wantState(t, mem, call, store.InDoubt)
		if d.probes < 6 {
			t.Errorf("looked %d times, want each asker to look", d.probes)
		}
		d.effect("k", "v")
		do(t.Context(), p, call, never(t)).want(t, "v", true)
	})
}

// TestHealProbeFails: no doubt is recorded, and the answer does not change.
func TestHealProbeFails(t *testing.T) {
	t.Parallel()
	for s, want := range map[existingState]error{live: semel.ErrInProgress, expired: semel.ErrInProgress, inDoubt: semel.ErrInDoubt} {
		t.Run(string(s), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mem := memory.New(memory.Options{})
				d := &domain{err: errBoom}
				call := d.op().Call(me, "k", "in")
				createExisting(t, mem, call, s)
				before := record(t, mem, call).Token
				p := start(t, mem, semel.Options{})
				a := do(t.Context(), p, call, never(t))
				a.wantErr(t, want, errBoom)
				if want == semel.ErrInProgress && semel.RetryAfter(a.err) <= 0 { //nolint:errorlint // one of the table
					t.Errorf("RetryAfter(%v) is zero", a.err)
				}
				if got := record(t, mem, call).Token; got != before {
					t.Errorf("the current record is %+v, want %+v", got, before)
				}
			})
		})
	}
}

// TestHealOfTheLeaderItself: a leader whose function returns an unknown error calls its own
// probe.
func TestHealOfTheLeaderItself(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		d := new(domain)
		op := d.op()
		do(t.Context(), p, op.Call(me, "took effect", "in"), func(context.Context) (string, error) {
			d.effect("took effect", "v")
			return "", errBoom
		}).want(t, "v", false)
		do(t.Context(), p, op.Call(me, "no evidence", "in"), fails(errBoom)).wantRunNow(t, store.Unknown, store.InDoubt)
		d.err = errCut
		a := do(t.Context(), p, op.Call(me, "probe fails", "in"), fails(errBoom))
		a.wantRunNow(t, store.Unknown, store.InDoubt)
		p.seen.want(t, event.StoreError)
		d.err = nil
		probes := d.probes
		do(t.Context(), p, op.Call(me, "refused", "in"), fails(semel.Final(errBoom))).wantFailure(t, "boom")
		if d.probes != probes {
			t.Error("a marked error made it look, want the mark believed")
		}
		wantState(t, mem, op.Call(me, "refused", "in"), store.Failed)
	})
}

// TestHealConcurrently: one of them writes, and all give the same answer.
func TestHealConcurrently(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		d := new(domain)
		call := d.op().Call(me, "k", "in")
		claimAndCrash(t, start(t, mem, semel.Options{}), call)
		d.effect("k", "v")
		gate := make(chan struct{})
		var answers []<-chan answer
		for range 10 {
			p := start(t, mem, semel.Options{})
			p.faults.Decide(func(r request) fault {
				if r.To() == store.Succeeded {
					return fault{Gate: gate}
				}
				return fault{}
			})
			answers = append(answers, later(func() answer { return do(t.Context(), p, call, never(t)) }))
		}
		synctest.Wait()
		close(gate)
		for _, a := range answers {
			(<-a).want(t, "v", true)
		}
	})
}

// TestHealWithLostWrite: without the record there is no answer.
func TestHealWithLostWrite(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"cut": {Before: errCut}, "refused": {Result: &store.SwapResult{Err: errCut}}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mem := memory.New(memory.Options{})
				d := new(domain)
				call := d.op().Call(me, "k", "in")
				createExisting(t, mem, call, inDoubt)
				d.effect("k", "v")
				p := start(t, mem, semel.Options{})
				p.faults.Decide(func(r request) fault {
					if r.To() == store.Succeeded {
						return f
					}
					return fault{}
				})
				do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrUnavailable, errCut)
				p.faults.Decide(nil)
				do(t.Context(), p, call, never(t)).want(t, "v", true)
			})
		})
	}
}

// TestHealLosesToTheLeader that ends while the domain is looked at.
func TestHealLosesToTheLeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		p, other := start(t, mem, semel.Options{}), start(t, mem, semel.Options{})
		looking, look := make(chan struct{}), make(chan struct{})
		first := true
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Heal(func(context.Context, semel.Scope, string) (any, bool, error) {
			if first {
				first = false
				close(looking)
				<-look
			}
			return "what the domain says", true, nil
		})})
		call := op.Call(me, "k", "in")
		var follower <-chan answer
		do(t.Context(), p, call, func(context.Context) (string, error) {
			follower = later(func() answer { return do(t.Context(), other, call, never(t)) })
			<-looking
			return "v", nil
		}).want(t, "v", false)
		close(look)
		(<-follower).want(t, "v", true)
	})
}

// TestHealedResultThatCannotBeStored is a success without a result.
func TestHealedResultThatCannotBeStored(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Heal(func(context.Context, semel.Scope, string) (any, bool, error) {
			return make(chan int), true, nil
		})})
		call := op.Call(me, "k", "in")
		createExisting(t, mem, call, inDoubt)
		a := do(t.Context(), start(t, mem, semel.Options{}), call, never(t))
		if !errors.Is(a.err, semel.ErrResultUnavailable) || !a.replayed {
			t.Errorf("got replayed %v, %v, want ErrResultUnavailable", a.replayed, a.err)
		}
		wantState(t, mem, call, store.Succeeded)
	})
}

// TestHealProbeReceivesScopeAndKey: scope and key as the caller gave them, also when
// a sweeper looks.
func TestHealProbeReceivesScopeAndKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		var got [][]string
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Heal(func(_ context.Context, s semel.Scope, key string) (any, bool, error) {
			got = append(got, append(s.Parts(), key))
			return nil, false, nil
		})})
		call := op.Call(semel.ScopeOf("tenant:1", "7:x"), "k\x00", "in")
		createExisting(t, mem, call, expired)
		p := start(t, mem, semel.Options{Operations: []semel.Declared{op}})
		if _, err := admin.Sweep(t.Context(), p, 10); err != nil {
			t.Errorf("Sweep: %v", err)
		}
		do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrInDoubt)
		for _, parts := range got {
			if len(parts) != 3 || parts[0] != "tenant:1" || parts[1] != "7:x" || parts[2] != "k\x00" {
				t.Errorf("the probe got %q", parts)
			}
		}
		if len(got) < 2 {
			t.Errorf("looked %d times, want the sweeper and the follower to look", len(got))
		}
	})
}
