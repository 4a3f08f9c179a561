package semel_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

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
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		out := answeredTwice(t, p, call)
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
		"purge": func(t *testing.T, p *process) {
			t.Helper()
			if n, err := admin.Purge(t.Context(), p, 10); n != 1 || err != nil {
				t.Fatalf("Purge: %d, %v", n, err)
			}
		},
		"others": func(t *testing.T, p *process) {
			t.Helper()
			for n := range 8000 { // of 400 bytes and more, of which a memory of 1 MiB has room for less than 3000
				do(t.Context(), p, op.Call(me, strconv.Itoa(n), "in"), returns("v")).want(t, "v", false)
			}
		},
		"close": func(t *testing.T, p *process) {
			t.Helper()
			if err := p.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
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
