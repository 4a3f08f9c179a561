package semel_test

import (
	"context"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

const month = 30 * 24 * time.Hour

// TestRule16RetentionIsStored: an engine that does not know an operation keeps its records
// for as long as the operation does.
func TestRule16RetentionIsStored(t *testing.T) {
	type row struct {
		leave   func(t *testing.T, p *process, c semel.Call)
		resolve bool // else cancel
	}
	eachInBubble(t, map[string]row{
		"resolve what ended in doubt": {func(t *testing.T, p *process, c semel.Call) {
			do(t.Context(), p, c, fails(errBoom)).wantErr(t, semel.ErrOutcomeUnknown)
		}, true},
		"resolve what a caller found dead": {func(t *testing.T, p *process, c semel.Call) {
			createExisting(t, p.mem, c, expired)
			do(t.Context(), p, c, never(t)).wantErr(t, semel.ErrInDoubt)
		}, true},
		"resolve what a sweeper found dead": {func(t *testing.T, p *process, c semel.Call) {
			createExisting(t, p.mem, c, expired)
			check.Result(admin.Sweep(t.Context(), p, 10))(t, admin.Swept{Doubted: 1}, "Sweep")
		}, true},
		"cancel what was released": {func(t *testing.T, p *process, c semel.Call) {
			do(t.Context(), p, c, fails(semel.NotCommitted(errBoom))).wantErr(t, errBoom)
		}, false},
		"cancel what waits for a worker": {func(t *testing.T, p *process, _ semel.Call) {
			queued(t, start(t, p.mem, semel.Options{}), plain("op", queueable(semel.OperationOptions[string]{Retention: month})), "k")
		}, false},
	}, func(t *testing.T, tt row) {
		op := plain("op", semel.OperationOptions[string]{Retention: month})
		p, mem := owned(t, op)
		c := op.Call(me, "k", "k")
		tt.leave(t, p, c)
		stranger := start(t, mem, semel.Options{})
		var now store.Record
		var err error
		if tt.resolve {
			now, err = admin.Resolve(t.Context(), stranger, admin.Resolution{ID: c.ID(), To: store.Succeeded, Result: "v", Actor: "ann", Reason: "seen"})
		} else {
			now, err = admin.Cancel(t.Context(), stranger, c.ID(), "not wanted")
		}
		if err != nil || !now.State.Final() || now.Expire != month {
			t.Errorf("the record is %v, kept for %v, %v; want it final, and kept for %v", now.State, now.Expire, err, month)
		}
	})
}

// TestRule16TaintFollowsThePolicyOfTheAttempt: a version of the program that has
// made the operation Atomic proves nothing about an attempt that began under another policy.
func TestRule16TaintFollowsThePolicyOfTheAttempt(t *testing.T) {
	type row struct {
		before  semel.Policy
		state   store.State
		verdict store.Verdict
	}
	eachInBubble(t, map[string]row{
		"Hold":        {semel.Hold(), store.InDoubt, store.Unknown},
		"Keyed":       {semel.Keyed(), store.InDoubt, store.Unknown},
		"AtLeastOnce": {semel.AtLeastOnce(), store.InDoubt, store.Unknown},
		"Atomic":      {semel.Atomic(), store.Failed, store.NotCommitted},
	}, func(t *testing.T, tt row) {
		p, call := soloCall(t, semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: time.Minute})
		createExisting(t, p.mem, plain("op", semel.OperationOptions[string]{Policy: tt.before}).Call(me, "k", "in"), expired)
		a := doTx(t.Context(), p, call, func(context.Context, *memory.Tx) (string, error) { return "", semel.Final(errBoom) })
		check.Equal(t, semel.VerdictOf(a.err), tt.verdict, "VerdictOf(%v)", a.err)
		wantState(t, p.mem, call, tt.state)
	})
}

// The input of an operation in three versions of a program. Each later one has more
// fields, and has the old ones in another order.
type (
	inputV1 struct {
		Account string
		Amount  int64
	}
	extras struct {
		Note  string            `json:"note"`
		Tags  []string          `json:"tags"`
		Attrs map[string]string `json:"attrs"`
	}
	inputV2 struct {
		Currency string
		Amount   int64
		Account  string
		Options  struct{ Urgent bool }
		Parent   *inputV1

		extras
	}
)

func opV1() *semel.Operation[inputV1] {
	return semel.Define("pay", semel.OperationOptions[inputV1]{})
}

func opV2() *semel.Operation[inputV2] {
	return semel.Define("pay", semel.OperationOptions[inputV2]{})
}

// A deployment that adds fields to an input changes nothing for the keys that exist, in
// either direction, as long as the new fields are not set.
func TestRule16ANewFieldDoesNotChangeFingerprints(t *testing.T) {
	old, added := opV1().Call(me, "k", inputV1{"a", 7}), opV2().Call(me, "k", inputV2{Account: "a", Amount: 7})
	eachInBubble(t, map[string][2]semel.Call{"old record": {old, added}, "new record": {added, old}}, func(t *testing.T, calls [2]semel.Call) {
		p, _ := solo(t, semel.Options{})
		do(t.Context(), p, calls[0], returns("done")).want(t, "done", false)
		do(t.Context(), p, calls[1], never(t)).want(t, "done", true)
	})
}

// A set field makes another request, and so does a pointer to zero.
func TestRule16SetFieldsCount(t *testing.T) {
	base := inputV2{Account: "a", Amount: 7}
	eachInBubble(t, map[string]func(*inputV2){
		"old field":        func(in *inputV2) { in.Amount = 8 },
		"field set to 0":   func(in *inputV2) { in.Amount = 0 },
		"new field":        func(in *inputV2) { in.Currency = "EUR" },
		"nested":           func(in *inputV2) { in.Options.Urgent = true },
		"pointer to zero":  func(in *inputV2) { in.Parent = &inputV1{} },
		"embedded":         func(in *inputV2) { in.Note = "n" },
		"empty list":       func(in *inputV2) { in.Tags = []string{} },
		"zero in a list":   func(in *inputV2) { in.Tags = []string{""} },
		"empty map":        func(in *inputV2) { in.Attrs = map[string]string{} },
		"zero under a key": func(in *inputV2) { in.Attrs = map[string]string{"k": ""} },
		"quotes":           func(in *inputV2) { in.Account = `a","Currency":"EUR` },
	}, func(t *testing.T, change func(*inputV2)) {
		p, _ := solo(t, semel.Options{})
		do(t.Context(), p, opV2().Call(me, "k", base), returns("done")).want(t, "done", false)
		in := base
		change(&in)
		do(t.Context(), p, opV2().Call(me, "k", in), never(t)).wantErr(t, semel.ErrMismatch)
	})
}

// Fields that JSON chooses between have their JSON name once.
func TestRule16EmbeddedFieldsCountAsInJSON(t *testing.T) {
	t.Parallel()
	type inner struct {
		ID   int
		Name string
	}
	type outer struct {
		inner

		ID int
	}
	flat := semel.Define("op", semel.OperationOptions[inner]{}).Call(me, "k", inner{1, "n"})
	nested := semel.Define("op", semel.OperationOptions[outer]{}).Call(me, "k", outer{inner{Name: "n"}, 1})
	p, _ := solo(t, semel.Options{})
	do(t.Context(), p, flat, returns("done")).want(t, "done", false)
	do(t.Context(), p, nested, never(t)).want(t, "done", true)
	hidden := semel.Define("op", semel.OperationOptions[outer]{}).Call(me, "k2", outer{inner{ID: 2}, 1})
	do(t.Context(), p, hidden, never(t)).wantErr(t, semel.ErrInvalid)
}
