package semel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// Rule 11: same key, other fingerprint: ErrMismatch in every state that can be
// seen, before anything else is said. Fingerprints carry a version.

func TestRule11InEveryState(t *testing.T) {
	eachPair(t, policies(), existingStates(), func(t *testing.T, pc policyCase, s existingState) {
		if s == nothing {
			return
		}
		p, mem := solo(t, semel.Options{})
		op := plain("op", semel.OperationOptions[string]{Policy: pc.p})
		createExisting(t, mem, op.Call(me, "k", "in"), s)
		other := op.Call(me, "k", "other")
		before := record(t, mem, other)
		do(t.Context(), p, other, never(t)).wantErr(t, semel.ErrMismatch)
		if pc.name == "unset" || pc.name == "Atomic" {
			doTx(t.Context(), p, other, neverTx(t)).wantErr(t, semel.ErrMismatch)
		}
		check.Equal(t, record(t, mem, other).Token, before.Token, "the record")
		wantEdges(t, p.faults, tryNew)
		p.seen.want(t, event.Mismatch)
	})
}

// TestRule11MismatchBeforeTheProbe: another request learns nothing from the probe.
func TestRule11MismatchBeforeTheProbe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		asked := false
		probe := func(context.Context, semel.Scope, string) (any, bool, error) {
			asked = true
			return nil, false, nil
		}
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Heal(probe)})
		createExisting(t, mem, op.Call(me, "k", "in"), live)
		do(t.Context(), p, op.Call(me, "k", "other"), never(t)).wantErr(t, semel.ErrMismatch)
		if asked {
			t.Error("the probe was called")
		}
	})
}

// TestRule11WhileItRunsInThisProcess: a follower with another request gets the
// mismatch at once, also if it would wait.
func TestRule11WhileItRunsInThisProcess(t *testing.T) {
	eachPair(t, entryPoints(), map[string]time.Duration{"without waiting": 0, "waiting": time.Hour}, func(t *testing.T, d entryPoint, wait time.Duration) {
		p, _ := solo(t, semel.Options{Wait: wait})
		op := plain("op", d.o)
		d.ask(t.Context(), p, op.Call(me, "k", "in"), func(ctx context.Context) (string, error) {
			began := time.Now()
			d.ask(t.Context(), p, op.Call(me, "k", "other"), never(t)).wantErr(t, semel.ErrMismatch)
			check.Equal(t, time.Since(began), 0, "it took")
			return "v", nil
		}).want(t, "v", false)
	})
}

// TestRule11WhileTheFirstCallIsClaiming: callers of several requests that come at
// the same time; one request wins, the others mismatch.
func TestRule11WhileTheFirstCallIsClaiming(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, _ := solo(t, semel.Options{Wait: time.Hour})
		op := plain("op", d.o)
		gate := make(chan struct{})
		p.faults.Decide(failFirst("Swap", fault{Gate: gate}))
		finish := make(chan struct{})
		first := blocked(func() answer {
			return d.ask(t.Context(), p, op.Call(me, "k", "in"), func(context.Context) (string, error) { <-finish; return "v", nil })
		})
		same := later(func() answer { return d.ask(t.Context(), p, op.Call(me, "k", "in"), never(t)) })
		other := blocked(func() answer { return d.ask(t.Context(), p, op.Call(me, "k", "other"), never(t)) })
		close(gate)
		(<-other).wantErr(t, semel.ErrMismatch)
		close(finish)
		(<-first).want(t, "v", false)
		(<-same).want(t, "v", true)
	})
}

// TestRule11ScopesAndOperationsAreApart: the same key of another scope, or of
// another operation, is another record.
func TestRule11ScopesAndOperationsAreApart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		op, another := plain("op", semel.OperationOptions[string]{}), plain("another", semel.OperationOptions[string]{})
		calls := []semel.Call{
			op.Call(me, "k", "1"), op.Call(semel.ScopeOf("you"), "k", "2"), another.Call(me, "k", "3"), op.Call(me, "K", "4"),
			op.Call(semel.ScopeOf("m", "e"), "k", "5"), op.Call(semel.Shared(), "k", "6"), op.Call(semel.ScopeOf("*"), "k", "7"),
			op.Call(me, "k ", "8"),
		}
		for i, c := range calls {
			v := string(rune('a' + i))
			do(t.Context(), p, c, returns(v)).want(t, v, false)
		}
		for i, c := range calls {
			do(t.Context(), p, c, never(t)).want(t, string(rune('a'+i)), true)
		}
	})
}

type order struct {
	Item  string
	Count int
	Trace string
}

func itemOf(o order) any { return o.Item }

func itemAndCountOf(o order) any {
	return struct {
		Item  string
		Count int
	}{o.Item, o.Count}
}

// TestRule11FingerprintsOfOtherVersions: each program version knows its own choice
// of fields and earlier ones. A fingerprint of a newer version cannot be compared,
// so the call returns a retryable error; a process of the newer version answers it
// (rule 16).
func TestRule11FingerprintsOfOtherVersions(t *testing.T) {
	version := func(n int) *semel.Operation[order] {
		fields := []func(order) any{itemOf, itemAndCountOf}
		return semel.Define("op", semel.OperationOptions[order]{Fingerprints: fields[:n]})
	}
	stored := order{"book", 1, "abc"}
	type row struct {
		stored, asks int
		with         order
		want         error
	}
	eachInBubble(t, map[string]row{
		"whole input, same":                      {0, 0, stored, nil},
		"whole input, other":                     {0, 0, order{"book", 1, "xyz"}, semel.ErrMismatch},
		"fields, others do not count":            {1, 1, order{"book", 2, "xyz"}, nil},
		"fields, other":                          {1, 1, order{"pen", 1, "abc"}, semel.ErrMismatch},
		"whole input by a newer program":         {0, 2, stored, nil},
		"whole input by a newer program, other":  {0, 2, order{"book", 1, "xyz"}, semel.ErrMismatch},
		"older fields by a newer program":        {1, 2, order{"book", 2, "xyz"}, nil},
		"older fields by a newer program, other": {1, 2, order{"pen", 1, "abc"}, semel.ErrMismatch},
		"newer fields by an older program":       {2, 1, stored, semel.ErrUnavailable},
		"newer fields by the first program":      {1, 0, stored, semel.ErrUnavailable},
	}, func(t *testing.T, tt row) {
		p, _ := solo(t, semel.Options{})
		do(t.Context(), p, version(tt.stored).Call(me, "k", stored), returns("v")).want(t, "v", false)
		a := do(t.Context(), p, version(tt.asks).Call(me, "k", tt.with), never(t))
		if tt.want == nil {
			a.want(t, "v", true)
			return
		}
		a.wantErr(t, tt.want)
		check.Equal(t, errors.Is(a.err, semel.ErrMismatch), errors.Is(tt.want, semel.ErrMismatch), "%v is a mismatch", a.err)
	})
}

// TestRule11AlgorithmOfANewerProgram: a fingerprint of an unknown algorithm cannot
// be compared, so the call returns a retryable error.
func TestRule11AlgorithmOfANewerProgram(t *testing.T) {
	eachInBubble(t, map[string]semel.Raw{"newer": {2, 0}, "empty": {}, "short": {1}, "long": make(semel.Raw, 99)}, func(t *testing.T, stored semel.Raw) {
		p, call := soloCall(t, semel.OperationOptions[string]{})
		to := store.Record{
			ID: call.ID(), Token: store.Token{State: store.Pending, Owner: 1},
			Operation: "op", Scope: me.Bytes(), Key: "k", Fingerprint: stored,
		}
		check.Must(p.mem.Swap(t.Context(), []store.Change{{To: to}}))(t)
		do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrUnavailable)
		doTx(t.Context(), p, call, neverTx(t)).wantErr(t, semel.ErrUnavailable)
	})
}

// TestRule11RawInputsAreComparedByteForByte.
func TestRule11RawInputsAreComparedByteForByte(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		op := semel.Define("op", semel.OperationOptions[semel.Raw]{})
		body := semel.Raw("{\"a\": 1}\xff")
		do(t.Context(), p, op.Call(me, "k", body), returns("v")).want(t, "v", false)
		do(t.Context(), p, op.Call(me, "k", semel.Raw("{\"a\": 1}\xff")), never(t)).want(t, "v", true)
		do(t.Context(), p, op.Call(me, "k", semel.Raw("{\"a\":1}\xff")), never(t)).wantErr(t, semel.ErrMismatch)
		do(t.Context(), p, op.Call(me, "k", nil), never(t)).wantErr(t, semel.ErrMismatch)
		chosen := semel.Define("chosen", semel.OperationOptions[order]{
			Fingerprints: []func(order) any{func(o order) any { return semel.Raw(o.Item) }},
		})
		do(t.Context(), p, chosen.Call(me, "k", order{"\xff", 1, ""}), returns("v")).want(t, "v", false)
		do(t.Context(), p, chosen.Call(me, "k", order{"\xff", 2, ""}), never(t)).want(t, "v", true)
		do(t.Context(), p, chosen.Call(me, "k", order{"\xfe", 1, ""}), never(t)).wantErr(t, semel.ErrMismatch)
	})
}

// TestRule11InFlightRequestsRejectNoOther: a request that runs without a record, a
// claim or a held lock does not own its key. While it runs in the same process, the
// request that made the record gets its response, and a request for a key without a
// record is told to retry. Only the wrong request is a mismatch.
func TestRule11InFlightRequestsRejectNoOther(t *testing.T) {
	type row struct {
		options semel.OperationOptions[string]
		run     func(t *testing.T, p *process, c semel.Call, hold <-chan struct{}) answer
	}
	eachInBubble(t, map[string]row{
		"optimistic": {optimistic(), func(t *testing.T, p *process, c semel.Call, hold <-chan struct{}) answer {
			return doTx(t.Context(), p, c, func(ctx context.Context, tx *memory.Tx) (string, error) {
				<-hold
				return puts("wrong", "wrong")(ctx, tx)
			})
		}},
		"batch": {semel.OperationOptions[string]{}, func(t *testing.T, p *process, c semel.Call, hold <-chan struct{}) answer {
			v, replayed, err := semel.DoBatch(t.Context(), p.Engine, c, func(context.Context) (string, memory.Batch, error) {
				<-hold
				return "wrong", put("wrong"), nil
			})
			return answer{v, replayed, err}
		}},
	}, func(t *testing.T, row row) {
		p, other, mem := pair(t, semel.Options{})
		op := plain("op", row.options)
		right, wrong := op.Call(me, "k", "right"), op.Call(me, "k", "wrong")
		hold := make(chan struct{})
		inFlight := blocked(func() answer { return row.run(t, p, wrong, hold) })
		doTx(t.Context(), p, right, neverTx(t)).wantErr(t, semel.ErrInProgress)
		doTx(t.Context(), other, right, puts("right", "right")).want(t, "right", false)
		doTx(t.Context(), p, right, neverTx(t)).want(t, "right", true)
		do(t.Context(), p, right, never(t)).want(t, "right", true)
		doTx(t.Context(), p, op.Call(me, "k", "third"), neverTx(t)).wantErr(t, semel.ErrMismatch)
		close(hold)
		(<-inFlight).wantErr(t, semel.ErrMismatch)
		wantEffect(t, mem, "wrong", false)
		wantEffect(t, mem, "right", true)
	})
}
