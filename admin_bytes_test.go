package semel_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestOperatorsReceiveTheirOwnCopies: an operator's program may change the bytes of
// a record that it received, also with a store in memory.
func TestOperatorsReceiveTheirOwnCopies(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, e *semel.Engine[*memory.Tx], id store.ID) (store.Record, error){
		"Get": func(t *testing.T, e *semel.Engine[*memory.Tx], _ store.ID) (store.Record, error) {
			t.Helper()
			r, _, err := admin.Get(t.Context(), e, "op", me, "k")
			return r, err
		},
		"Cancel what waits": func(t *testing.T, e *semel.Engine[*memory.Tx], id store.ID) (store.Record, error) {
			t.Helper()
			return admin.Cancel(t.Context(), e, id, "not wanted")
		},
		"Reschedule": func(t *testing.T, e *semel.Engine[*memory.Tx], id store.ID) (store.Record, error) {
			t.Helper()
			return admin.Reschedule(t.Context(), e, id, time.Hour)
		},
		"Redrive what has not failed": func(t *testing.T, e *semel.Engine[*memory.Tx], id store.ID) (store.Record, error) {
			t.Helper()
			r, err := admin.Redrive(t.Context(), e, admin.RedriveRequest{ID: id, Actor: "ann", Reason: "mended"})
			return r, unless(err, admin.ErrNotFailed)
		},
		"Resolve what is not in doubt": func(t *testing.T, e *semel.Engine[*memory.Tx], id store.ID) (store.Record, error) {
			t.Helper()
			r, err := admin.Resolve(t.Context(), e, admin.Resolution{ID: id, To: store.Failed, Actor: "ann", Reason: "looked"})
			return r, unless(err, admin.ErrNotInDoubt)
		},
	}
	for name, ask := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mem := memory.New(memory.Options{})
			op := plain("op", retried(semel.AtLeastOnce()))
			e := check.Must(semel.New(mem, semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{op}}))(t)
			call := op.Call(me, "k", "input")
			check.Must(semel.Enqueue(t.Context(), e, call, semel.EnqueueOptions{}))(t)
			got := check.Must(ask(t, e, call.ID()))(t)
			before := record(t, mem, call)
			if len(got.Input) == 0 || string(got.Input) != string(before.Input) || string(got.Outcome) != string(before.Outcome) {
				t.Fatalf("got %q and %q, want %q and %q", got.Input, got.Outcome, before.Input, before.Outcome)
			}
			clear(got.Input)
			clear(got.Outcome)
			current := record(t, mem, call)
			if string(current.Input) != string(before.Input) || string(current.Outcome) != string(before.Outcome) {
				t.Errorf("%q and %q are current, want the unchanged %q and %q", current.Input, current.Outcome, before.Input, before.Outcome)
			}
		})
	}
}

// unless is nil when err is what was expected, and says so when it is not.
func unless(err, want error) error {
	if errors.Is(err, want) {
		return nil
	}
	return fmt.Errorf("got %w, want %w", err, want)
}
