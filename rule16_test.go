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

// settlers are the ways in which an engine that does not know the operation settles what
// another program left.
func settlers() map[string]struct {
	createExisting func(t *testing.T, mem *memory.Store, op *semel.Operation[string]) semel.Call
	act            func(t *testing.T, p *process, c semel.Call) (store.Record, error)
} {
	resolve := func(t *testing.T, p *process, c semel.Call) (store.Record, error) {
		t.Helper()
		return admin.Resolve(t.Context(), p, admin.Resolution{ID: c.ID(), To: store.Succeeded, Result: "v", Actor: "ann", Reason: "seen"})
	}
	cancel := func(t *testing.T, p *process, c semel.Call) (store.Record, error) {
		t.Helper()
		return admin.Cancel(t.Context(), p, c.ID(), "not wanted")
	}
	return map[string]struct {
		createExisting func(t *testing.T, mem *memory.Store, op *semel.Operation[string]) semel.Call
		act            func(t *testing.T, p *process, c semel.Call) (store.Record, error)
	}{
		"resolve what ended in doubt": {func(t *testing.T, mem *memory.Store, op *semel.Operation[string]) semel.Call {
			t.Helper()
			c := op.Call(me, "k", "in")
			do(t.Context(), start(t, mem, semel.Options{}), c, fails(errBoom)).wantErr(t, semel.ErrOutcomeUnknown)
			return c
		}, resolve},
		"resolve what a caller found dead": {func(t *testing.T, mem *memory.Store, op *semel.Operation[string]) semel.Call {
			t.Helper()
			c := op.Call(me, "k", "in")
			createExisting(t, mem, c, expired)
			do(t.Context(), start(t, mem, semel.Options{}), c, never(t)).wantErr(t, semel.ErrInDoubt)
			return c
		}, resolve},
		"resolve what a sweeper found dead": {func(t *testing.T, mem *memory.Store, op *semel.Operation[string]) semel.Call {
			t.Helper()
			c := op.Call(me, "k", "in")
			createExisting(t, mem, c, expired)
			p := start(t, mem, semel.Options{Operations: []semel.Declared{op}})
			if s, err := admin.Sweep(t.Context(), p, 10); s.Doubted != 1 || err != nil {
				t.Fatalf("Sweep = %+v, %v", s, err)
			}
			return c
		}, resolve},
		"cancel what was released": {func(t *testing.T, mem *memory.Store, op *semel.Operation[string]) semel.Call {
			t.Helper()
			c := op.Call(me, "k", "in")
			do(t.Context(), start(t, mem, semel.Options{}), c, fails(semel.NotCommitted(errBoom))).wantErr(t, errBoom)
			return c
		}, cancel},
	}
}

// TestRule16RetentionIsStored: an engine that does not know an operation keeps its records
// for as long as the operation does.
func TestRule16RetentionIsStored(t *testing.T) {
	t.Parallel()
	for name, s := range settlers() {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mem := memory.New(memory.Options{})
				c := s.createExisting(t, mem, plain("op", semel.OperationOptions[string]{Retention: month}))
				operator := start(t, mem, semel.Options{})
				now, err := s.act(t, operator, c)
				if err != nil || !now.State.Final() || now.Expire != month {
					t.Errorf("the record is %v, kept for %v, %v; want it final, and kept for %v", now.State, now.Expire, err, month)
				}
			})
		})
	}
	t.Run("cancel what waits for a worker", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			mem := memory.New(memory.Options{})
			op := plain("op", queueable(semel.OperationOptions[string]{Retention: month}))
			c := queued(t, start(t, mem, semel.Options{}), op, "k")[0]
			now, err := admin.Cancel(t.Context(), start(t, mem, semel.Options{}), c.ID(), "not wanted")
			if err != nil || now.State != store.Failed || now.Expire != month {
				t.Errorf("the record is %v, kept for %v, %v; want it Failed, and kept for %v", now.State, now.Expire, err, month)
			}
		})
	})
}

// TestRule16TaintFollowsThePolicyOfTheAttempt: a version of the program that has
// made the operation Atomic proves nothing about an attempt that began under another policy.
func TestRule16TaintFollowsThePolicyOfTheAttempt(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]semel.Policy{
		"Hold": semel.Hold(), "Keyed": semel.Keyed(), "AtLeastOnce": semel.AtLeastOnce(), "Atomic": semel.Atomic(),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mem := memory.New(memory.Options{})
				createExisting(t, mem, plain("op", semel.OperationOptions[string]{Policy: before}).Call(me, "k", "in"), expired)
				now := plain("op", semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: time.Minute})
				p := start(t, mem, semel.Options{Operations: []semel.Declared{now}})
				call := now.Call(me, "k", "in")
				a := doTx(t.Context(), p, call, func(context.Context, *memory.Tx) (string, error) { return "", semel.Final(errBoom) })
				want, verdict := store.InDoubt, store.Unknown
				if name == "Atomic" {
					want, verdict = store.Failed, store.NotCommitted
				}
				check.Equal(t, semel.VerdictOf(a.err), verdict, "VerdictOf(%v)", a.err)
				check.Equal(t, record(t, mem, call).State, want, "the record")
			})
		})
	}
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
	t.Parallel()
	old, added := opV1().Call(me, "k", inputV1{"a", 7}), opV2().Call(me, "k", inputV2{Account: "a", Amount: 7})
	for name, calls := range map[string][2]semel.Call{"old record": {old, added}, "new record": {added, old}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := solo(t, semel.Options{})
			do(t.Context(), p, calls[0], returns("done")).want(t, "done", false)
			do(t.Context(), p, calls[1], never(t)).want(t, "done", true)
		})
	}
}

// A set field makes another request, and so does a pointer to zero.
func TestRule16SetFieldsCount(t *testing.T) {
	t.Parallel()
	base := inputV2{Account: "a", Amount: 7}
	for name, change := range map[string]func(*inputV2){
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := solo(t, semel.Options{})
			do(t.Context(), p, opV2().Call(me, "k", base), returns("done")).want(t, "done", false)
			in := base
			change(&in)
			do(t.Context(), p, opV2().Call(me, "k", in), never(t)).wantErr(t, semel.ErrMismatch)
		})
	}
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
