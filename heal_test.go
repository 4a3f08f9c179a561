package semel_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
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
	eachInBubble(t, map[string]bool{"of the leader's process": true, "of another process": false}, func(t *testing.T, same bool) {
		p, follower, mem := pair(t, semel.Options{})
		if same {
			follower = p
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
}

// TestHealLooksBeforeItWaits: also a follower that would wait looks first.
func TestHealLooksBeforeItWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{Wait: time.Hour})
		d := new(domain)
		call := d.op().Call(me, "k", "in")
		claimAndCrash(t, start(t, mem, semel.Options{}), call)
		began := time.Now()
		time.AfterFunc(12*time.Second, func() { d.effect("k", "v") })
		do(t.Context(), p, call, never(t)).want(t, "v", true)
		if took := time.Since(began); took < 12*time.Second || took > 14*time.Second {
			t.Errorf("healed after %v, want soon after the evidence came", took)
		}
	})
}

// TestHealProbeFails: no doubt is recorded, and the answer does not change.
func TestHealProbeFails(t *testing.T) {
	type row struct {
		found existingState
		want  error
	}
	eachInBubble(t, map[string]row{
		"live": {live, semel.ErrInProgress}, "expired": {expired, semel.ErrInProgress}, "in doubt": {inDoubt, semel.ErrInDoubt},
	}, func(t *testing.T, tt row) {
		p, mem := solo(t, semel.Options{})
		d := &domain{err: errBoom}
		call := d.op().Call(me, "k", "in")
		createExisting(t, mem, call, tt.found)
		before := record(t, mem, call).Token
		a := do(t.Context(), p, call, never(t))
		a.wantErr(t, tt.want, errBoom)
		check.Equal(t, semel.RetryAfter(a.err) > 0, tt.found != inDoubt, "there is a RetryAfter(%v)", a.err)
		check.Equal(t, record(t, mem, call).Token, before, "the current record")
	})
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

// TestHealWithLostWrite: without the record there is no answer.
func TestHealWithLostWrite(t *testing.T) {
	eachInBubble(t, map[string]fault{"cut": {Before: errCut}, "refused": {Result: &store.SwapResult{Err: errCut}}}, func(t *testing.T, f fault) {
		p, mem := solo(t, semel.Options{})
		d := new(domain)
		call := d.op().Call(me, "k", "in")
		createExisting(t, mem, call, inDoubt)
		d.effect("k", "v")
		p.faults.Decide(failTo(store.Succeeded, f))
		do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrUnavailable, errCut)
		p.faults.Decide(nil)
		do(t.Context(), p, call, never(t)).want(t, "v", true)
	})
}

// TestHealLosesToTheLeader that ends while the domain is looked at.
func TestHealLosesToTheLeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, other, _ := pair(t, semel.Options{})
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
		do(t.Context(), start(t, mem, semel.Options{}), call, never(t)).wantNoResult(t)
		wantState(t, mem, call, store.Succeeded)
	})
}

// TestHealProbeReceivesScopeAndKey: scope and key as the caller gave them, also when
// a sweeper looks.
func TestHealProbeReceivesScopeAndKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var got [][]string
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Heal(func(_ context.Context, s semel.Scope, key string) (any, bool, error) {
			got = append(got, append(s.Parts(), key))
			return nil, false, nil
		})})
		p, mem := owned(t, op)
		call := op.Call(semel.ScopeOf("tenant:1", "7:x"), "k\x00", "in")
		createExisting(t, mem, call, expired)
		check.Must(admin.Sweep(t.Context(), p, 10))(t)
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
