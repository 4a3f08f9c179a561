package semel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

// startWithoutRead starts a process on a store with many writers, where a call assumes
// that its key is new, and finds an existing record only by its first write.
func startWithoutRead(t *testing.T, mem *memory.Store) *process {
	t.Helper()
	f := limitedOver(mem, func(c *store.Capabilities) { c.Exclusion = store.ExcludesRecord })
	return launch(t, f, storetest.WithBatches[*memory.Tx, memory.Batch](f, mem), semel.Options{})
}

// TestBatchWithoutReplyOnAPendingRecord: the batch was sent as if the key were new. Its
// reply is lost, and the record proves that nothing was committed. It is sent again for
// the Pending record, which no other call is running.
func TestBatchWithoutReplyOnAPendingRecord(t *testing.T) {
	t.Parallel()
	mem := memory.New(memory.Options{})
	call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
	createExisting(t, mem, call, pending)
	p := startWithoutRead(t, mem)
	p.faults.Decide(func(r request) fault {
		if r.Method == "AtomicBatch" && r.MethodN == 1 {
			return fault{After: errCut}
		}
		return fault{}
	})
	v, replayed, err := semel.DoBatch(t.Context(), p.Engine, call, func(context.Context) (string, memory.Batch, error) {
		return "done", put("effect"), nil
	})
	if v != "done" || replayed || err != nil || !has(mem, "effect") {
		t.Errorf("DoBatch = %q, %v, %v, want done and its statement applied", v, replayed, err)
	}
	wantState(t, mem, call, store.Succeeded)
	p.seen.want(t, event.Fenced)
}

// TestBatchFailureOnAPendingRecord: the function fails before anything is sent, as if the
// key were new. Its failure is stored in the Pending record.
func TestBatchFailureOnAPendingRecord(t *testing.T) {
	t.Parallel()
	mem := memory.New(memory.Options{})
	call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
	createExisting(t, mem, call, pending)
	p := startWithoutRead(t, mem)
	want := &semel.Failure{Code: "no", Message: "not today"}
	_, _, err := semel.DoBatch(t.Context(), p.Engine, call, func(context.Context) (string, memory.Batch, error) {
		return "", nil, semel.Final(want)
	})
	if got, ok := errors.AsType[*semel.Failure](err); !ok || got.Code != want.Code {
		t.Errorf("DoBatch = %v, want the failure of the function", err)
	}
	wantState(t, mem, call, store.Failed)
}
