package semel_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// cached starts a process that keeps final records in memory.
func cached(t *testing.T, mem *memory.Store, o semel.Options) *process {
	t.Helper()
	o.CacheBytes = 1 << 20
	return start(t, mem, o)
}

// TestCacheAnswersRetries, of every door, and only those of the same
// request.
func TestCacheAnswersRetries(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p := cached(t, memory.New(memory.Options{}), semel.Options{})
		op := plain("op", d.o)
		d.ask(t.Context(), p, op.Call(me, "k", "in"), returns("v")).want(t, "v", false)
		d.ask(t.Context(), p, op.Call(me, "k", "in"), never(t)).want(t, "v", true)
		p.crash()
		d.ask(t.Context(), p, op.Call(me, "k", "in"), never(t)).want(t, "v", true)
		d.ask(t.Context(), p, op.Call(me, "k", "other"), never(t)).wantErr(t, semel.ErrMismatch)
		d.ask(t.Context(), p, op.Call(semel.ScopeOf("you"), "k", "in"), never(t)).wantErr(t, semel.ErrUnavailable)
		check.Equal(t, p.seen.count(event.Replayed), 2, "observed: replays")
	})
}

// TestCacheSeesChanges of its own process at once, and those of others when its entries
// have expired.
func TestCacheSeesChanges(t *testing.T) {
	eachPair(t, entryPoints(), map[string]bool{"own": true, "another process": false}, func(t *testing.T, d entryPoint, own bool) {
		mem := memory.New(memory.Options{})
		d.o.Retry = &semel.Retry{MaxErrors: 1}
		op := plain("op", d.o)
		o := semel.Options{CacheAge: time.Hour, Retention: time.Minute, Operations: []semel.Declared{op}}
		if !own {
			o.CacheAge, o.Retention = o.Retention, o.CacheAge
		}
		p := cached(t, mem, o)
		operator := p
		if !own {
			operator = start(t, mem, o)
		}
		call := op.Call(me, "k", "in")
		d.ask(t.Context(), p, call, fails(semel.Final(errBoom))).wantFailure(t, "boom")
		check.Must(admin.Redrive(t.Context(), operator, redrive(call)))(t)
		if !own {
			d.ask(t.Context(), p, call, never(t)).wantFailure(t, "boom")
			pass(o.CacheAge)
		}
		d.ask(t.Context(), p, call, returns("v")).want(t, "v", false)
		pass(o.Retention + time.Minute) // past its retention, which memory does not outlive
		check.Result(admin.Purge(t.Context(), operator, 10))(t, 1, "Purge")
		d.ask(t.Context(), p, call, returns("new")).want(t, "new", false)
	})
}

// TestCacheIsFilledAfterTheCommit: a commit that was rolled back, or whose outcome
// is unknown, caches nothing.
func TestCacheIsFilledAfterTheCommit(t *testing.T) {
	eachPair(t, txModes(), byName(fault.String, commitRefused(), commitDropped()), func(t *testing.T, s txMode, fate fault) {
		mem := memory.New(memory.Options{})
		p := cached(t, mem, semel.Options{CacheAge: time.Hour})
		call := plain("op", s.o).Call(me, "k", "in")
		p.faults.Decide(everyCommit(fate))
		if a := s.ask(t.Context(), p, call, puts("effect", "v")); a.err == nil {
			t.Errorf("got %q after a commit that failed", a.v)
		}
		p.faults.Decide(nil)
		pass(time.Minute)
		s.ask(t.Context(), p, call, puts("effect", "again")).want(t, "again", false)
		wantEffect(t, mem, "effect", true)
	})
}

// TestCacheIsBounded: the oldest entry that was not used since is evicted first. The cache holds as
// many keys with a time, although all their IDs begin with the same.
func TestCacheIsBounded(t *testing.T) {
	made := time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC) // when a bubble begins
	eachInBubble(t, map[string]func(string) (time.Time, bool){
		"without a time": nil, "with a time": func(string) (time.Time, bool) { return made, true },
	}, func(t *testing.T, keyTime func(string) (time.Time, bool)) {
		p, _ := solo(t, semel.Options{CacheBytes: 100_000, CacheAge: time.Hour})
		op := plain("op", semel.OperationOptions[string]{KeyTime: keyTime})
		const keys = 2000
		for i := range keys {
			do(t.Context(), p, op.Call(me, fmt.Sprint(i), "in"), returns("v")).want(t, "v", false)
			do(t.Context(), p, op.Call(me, "0", "in"), never(t)).want(t, "v", true)
		}
		p.crash()
		kept := 0
		for i := range keys {
			if do(t.Context(), p, op.Call(me, fmt.Sprint(i), "in"), never(t)).err == nil {
				kept++
			}
		}
		if kept < 50 || kept > 250 {
			t.Errorf("%d of %d records are in 100,000 bytes", kept, keys)
		}
		do(t.Context(), p, op.Call(me, "0", "in"), never(t)).want(t, "v", true)
	})
}

// TestCacheHitsWriteNothing: a look comes before the claim.
func TestCacheHitsWriteNothing(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, _ := solo(t, semel.Options{})
		op := plain("op", d.o)
		d.ask(t.Context(), p, op.Call(me, "k", "in"), returns("v")).want(t, "v", false)
		for range 40 {
			d.ask(t.Context(), p, op.Call(me, "k", "in"), never(t)).want(t, "v", true)
		}
		p.faults.Decide(func(r request) fault {
			if r.Writes() {
				t.Errorf("%s: wrote to the store", r.Method)
			}
			return fault{}
		})
		d.ask(t.Context(), p, op.Call(me, "k", "in"), never(t)).want(t, "v", true)
		p.faults.Decide(nil)
		for i := range 40 {
			d.ask(t.Context(), p, op.Call(me, fmt.Sprint("new", i), "in"), returns("v")).want(t, "v", false)
		}
		reads := p.faults.CallsOf("Get")
		d.ask(t.Context(), p, op.Call(me, "newest", "in"), returns("v")).want(t, "v", false)
		check.Equal(t, p.faults.CallsOf("Get"), reads, "reads, when most keys are new")
	})
}

// answeredTwice completes a key of p and returns its replay.
func answeredTwice(t *testing.T, p *process, call semel.Call) *adapter.Outcome {
	t.Helper()
	do(t.Context(), p, call, returns("v")).want(t, "v", false)
	a, out, err := adapter.Begin(t.Context(), p.Engine, call)
	if a != nil || err != nil {
		t.Fatalf("Begin: %v, %v", a, err)
	}
	return out
}

// TestCachedOutcomeIsValid: an outcome is valid exactly as long as the engine would
// answer with it from its cache, and that is observed as a replay.
func TestCachedOutcomeIsValid(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		p := cached(t, mem, semel.Options{CacheAge: time.Minute})
		out := answeredTwice(t, p, theCall)
		seen := p.seen.count(event.Replayed)
		known := adapter.Cached(p, out)
		if known == nil || p.seen.count(event.Replayed) != seen {
			t.Fatal("Cached says no, or an unreported outcome was observed")
		}
		if !known.Valid(t.Context()) || p.seen.count(event.Replayed) != seen+1 {
			t.Error("Valid says no, or observes no replay")
		}
		other := *out
		other.Record.Owner++
		if adapter.Cached(p, &other) != nil {
			t.Error("Cached has what another write made of the key")
		}
		pass(time.Minute)
		if known.Valid(t.Context()) || adapter.Cached(p, out) != nil {
			t.Error("Valid says yes to what is older than CacheAge")
		}
	})
}

// TestCachedOutcomeIsRejected after the process itself has purged the record, when the engine
// is closed, when others needed the room, and without a memory.
func TestCachedOutcomeIsRejected(t *testing.T) {
	t.Parallel()
	op := plain("op", semel.OperationOptions[string]{})
	call := op.Call(me, "k", "in")
	for name, after := range map[string]func(t *testing.T, p *process){
		"purge": func(t *testing.T, p *process) { check.Result(admin.Purge(t.Context(), p, 10))(t, 1, "Purge") },
		"others": func(t *testing.T, p *process) {
			for n := range 8000 { // of 400 bytes and more, of which a memory of 1 MiB has room for less than 3000
				do(t.Context(), p, op.Call(me, strconv.Itoa(n), "in"), returns("v")).want(t, "v", false)
			}
		},
		"close": func(t *testing.T, p *process) { check.Require(t, p.Close(t.Context())) },
	} {
		ahead := new(time.Duration)
		mem := memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(*ahead) }})
		p := cached(t, mem, semel.Options{CacheAge: time.Hour})
		out := answeredTwice(t, p, call)
		known := adapter.Cached(p, out)
		if known == nil {
			t.Fatalf("%s: Cached says no before it", name)
		}
		*ahead = 48 * time.Hour
		if after(t, p); known.Valid(t.Context()) {
			t.Errorf("Valid says yes after %s", name)
		}
	}
	p := start(t, memory.New(memory.Options{}), semel.Options{})
	if out := answeredTwice(t, p, call); adapter.Cached(p, out) != nil || out.Record.State != store.Succeeded {
		t.Errorf("Cached says yes without a memory, of %v", out.Record.State)
	}
}
