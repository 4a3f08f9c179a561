package semel_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

var errStatement = errors.New("the statement's error")

// put is a batch of one statement.
func put(key string) memory.Batch {
	return memory.Batch{func(tx *memory.Tx) error { return tx.Put(key, nil) }}
}

// has tells whether the statement of put was committed.
func has(mem *memory.Store, key string) bool {
	_, ok := mem.Value(key)
	return ok
}

type batchFunc = func(context.Context) (int, memory.Batch, error)

func handing(v int, b memory.Batch) batchFunc {
	return func(context.Context) (int, memory.Batch, error) { return v, b, nil }
}

// Record and statements commit together. A retry gets the first result, and another
// request with the key is a mismatch.
func TestBatchRunsOnce(t *testing.T) {
	t.Parallel()
	p, mem := solo(t, semel.Options{})
	op := semel.Define("op", semel.OperationOptions[int]{})
	call := op.Call(semel.Shared(), "key", 1)
	v, replayed, err := semel.DoBatch(t.Context(), p.Engine, call, handing(7, put("first")))
	if v != 7 || replayed || err != nil || !has(mem, "first") {
		t.Errorf("DoBatch = %v, %v, %v, want 7 and its statement applied", v, replayed, err)
	}
	v, replayed, err = semel.DoBatch(t.Context(), p.Engine, call, handing(8, put("second")))
	if v != 7 || !replayed || err != nil || has(mem, "second") {
		t.Errorf("DoBatch again = %v, %v, %v, want the first 7 and no second effect", v, replayed, err)
	}
	_, _, err = semel.DoBatch(t.Context(), p.Engine, op.Call(semel.Shared(), "key", 2), handing(8, put("second")))
	if !errors.Is(err, semel.ErrMismatch) || has(mem, "second") {
		t.Errorf("DoBatch of another request = %v, want ErrMismatch and no effect", err)
	}
	v, replayed, err = semel.DoTx(t.Context(), p.Engine, call, func(context.Context, *memory.Tx) (int, error) {
		t.Error("DoTx runs what a batch has done")
		return 0, nil
	})
	if v != 7 || !replayed || err != nil {
		t.Errorf("DoTx = %v, %v, %v, want the batch's 7", v, replayed, err)
	}
}

// Of many callers of one key in two processes, one commits its statements.
func TestBatchWithManyCallers(t *testing.T) {
	t.Parallel()
	mem := memory.New(memory.Options{})
	ps := [2]*process{start(t, mem, semel.Options{Wait: time.Minute}), start(t, mem, semel.Options{Wait: time.Minute})}
	op := semel.Define("op", semel.OperationOptions[int]{})
	got := make([]int, 20)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			var err error
			got[i], _, err = semel.DoBatch(t.Context(), ps[i%2].Engine, op.Call(semel.Shared(), "key", 1), handing(i, put(fmt.Sprint(i))))
			check.NoError(t, err, "DoBatch")
		})
	}
	wg.Wait()
	for i, v := range got {
		if v != got[0] || has(mem, fmt.Sprint(i)) != (i == got[0]) {
			t.Errorf("caller %d got %d, and its statement is applied: %v; want those of %d", i, v, has(mem, fmt.Sprint(i)), got[0])
		}
	}
}

// What fails leaves nothing, and is kept as the operation says, whether it was the
// function or a statement.
func TestBatchFails(t *testing.T) {
	t.Parallel()
	broken := append(put("written"), func(*memory.Tx) error { return errStatement })
	for name, row := range map[string]struct {
		op   semel.OperationOptions[int]
		fn   batchFunc
		kept bool
	}{
		"function":        {fn: func(context.Context) (int, memory.Batch, error) { return 0, put("written"), errStatement }},
		"function, kept":  {op: semel.OperationOptions[int]{OnError: semel.Keep}, fn: func(context.Context) (int, memory.Batch, error) { return 0, nil, errStatement }, kept: true},
		"function, final": {fn: func(context.Context) (int, memory.Batch, error) { return 0, nil, semel.Final(errStatement) }, kept: true},
		"statement":       {fn: handing(1, broken)},
		"statement, kept": {op: semel.OperationOptions[int]{OnError: semel.Keep}, fn: handing(1, broken), kept: true},
		"statement, final": {
			fn:   handing(1, memory.Batch{func(*memory.Tx) error { return semel.Final(errStatement) }}),
			kept: true,
		},
	} {
		p, mem := solo(t, semel.Options{})
		call := semel.Define("op", row.op).Call(semel.Shared(), "key", 1)
		_, _, err := semel.DoBatch(t.Context(), p.Engine, call, row.fn)
		if err == nil || has(mem, "written") {
			t.Errorf("%s: DoBatch = %v, want an error and no effect", name, err)
		}
		if a, ok := errtype.Find[*semel.AttemptError](err); !row.kept && (!ok || a.Verdict != store.NotCommitted || !errors.Is(err, errStatement)) {
			t.Errorf("%s: DoBatch = %v, want NotCommitted and the error", name, err)
		}
		v, _, err := semel.DoBatch(t.Context(), p.Engine, call, handing(7, put("again")))
		if _, failed := errtype.Find[*semel.Failure](err); failed != row.kept || !row.kept && v != 7 || has(mem, "again") == row.kept {
			t.Errorf("%s: repeated DoBatch = %v, %v, want it kept: %v", name, v, err, row.kept)
		}
	}
}

// A batch takes over an enqueued call, and leaves a running one alone.
func TestBatchOverExistingRecords(t *testing.T) {
	t.Parallel()
	op := semel.Define("op", semel.OperationOptions[int]{})
	call := op.Call(semel.Shared(), "key", 1)
	p, mem := solo(t, semel.Options{})
	if _, _, err := semel.DoTx(t.Context(), p.Engine, call, func(_ context.Context, tx *memory.Tx) (int, error) {
		_, _, err := semel.DoBatch(t.Context(), p.Engine, call, handing(1, put("beside")))
		if !errors.Is(err, semel.ErrInProgress) || has(mem, "beside") {
			t.Errorf("DoBatch beside a leader = %v, want ErrInProgress", err)
		}
		return 0, errStatement
	}); !errors.Is(err, errStatement) {
		t.Fatal(err)
	}
	call = semel.Define("queued", semel.OperationOptions[int]{Retry: &semel.Retry{}}).Call(semel.Shared(), "key", 1)
	check.Must(semel.Enqueue(t.Context(), p, call, semel.EnqueueOptions{}))(t)
	v, replayed, err := semel.DoBatch(t.Context(), p.Engine, call, handing(7, put("after")))
	if v != 7 || replayed || err != nil || !has(mem, "after") {
		t.Errorf("DoBatch of a queued key = %v, %v, %v, want 7 and its statement applied", v, replayed, err)
	}
}

// What DoBatch cannot do is refused before anything is run.
func TestBatchRejected(t *testing.T) {
	t.Parallel()
	p, _ := solo(t, semel.Options{})
	ctx := t.Context()
	never := func(context.Context) (int, memory.Batch, error) { t.Error("is run"); return 0, nil, nil }
	for name, o := range map[string]semel.OperationOptions[int]{
		"policy":     {Policy: semel.Hold()},
		"lease":      {Policy: semel.Atomic(), Lease: time.Second},
		"generation": {Generation: time.Hour},
	} {
		if _, _, err := semel.DoBatch(ctx, p.Engine, semel.Define("op", o).Call(semel.Shared(), "key", 1), never); !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("%s: DoBatch = %v, want ErrInvalid", name, err)
		}
	}
	call := semel.Define("op", semel.OperationOptions[int]{}).Call(semel.Shared(), "key", 1)
	if _, _, err := semel.DoBatch(ctx, p.Engine, call, func(context.Context) (int, []string, error) { t.Error("is run"); return 0, nil, nil }); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("DoBatch of another kind of batch = %v, want ErrInvalid", err)
	}
	_, _, _ = semel.DoTx(ctx, p.Engine, call, func(ctx context.Context, _ *memory.Tx) (int, error) {
		_, _, err := semel.DoBatch(ctx, p.Engine, call, never)
		check.ErrorIs(t, err, semel.ErrInvalid, "DoBatch within a transaction")
		return 0, err
	})
}
