package semel_test

import (
	"context"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
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
				if got := semel.VerdictOf(a.err); got != verdict {
					t.Errorf("VerdictOf(%v) = %v, want %v", a.err, got, verdict)
				}
				if r := record(t, mem, call); r.State != want {
					t.Errorf("the record is %v, want %v", r.State, want)
				}
			})
		})
	}
}
