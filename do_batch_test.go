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
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

var errStatement = errors.New("the statement's error")

// put is a batch of one statement.
func put(key string) memory.Batch {
	return memory.Batch{func(tx *memory.Tx) error { return tx.Put(key, nil) }}
}

type batchFunc = func(context.Context) (string, memory.Batch, error)

// handing is a function that returns v and hands over b.
func handing(v string, b memory.Batch) batchFunc {
	return func(context.Context) (string, memory.Batch, error) { return v, b, nil }
}

// failingBatch is a function that hands over b and returns err.
func failingBatch(b memory.Batch, err error) batchFunc {
	return func(context.Context) (string, memory.Batch, error) { return "", b, err }
}

// neverBatch is a function that must not run.
func neverBatch(t *testing.T) batchFunc {
	return func(ctx context.Context) (string, memory.Batch, error) {
		v, err := never(t)(ctx)
		return v, nil, err
	}
}

func doBatch(ctx context.Context, p *process, c semel.Call, fn batchFunc) answer {
	v, replayed, err := semel.DoBatch(ctx, p.Engine, c, fn)
	return answer{v, replayed, err}
}

// Record and statements commit together. A retry gets the first result, and another
// request with the key is a mismatch.
func TestBatchRunsOnce(t *testing.T) {
	t.Parallel()
	p, mem := solo(t, semel.Options{})
	doBatch(t.Context(), p, theCall, handing("first", put("first"))).want(t, "first", false)
	wantEffect(t, mem, "first", true)
	doBatch(t.Context(), p, theCall, handing("second", put("second"))).want(t, "first", true)
	other := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "another input")
	doBatch(t.Context(), p, other, handing("second", put("second"))).wantErr(t, semel.ErrMismatch)
	wantEffect(t, mem, "second", false)
	doTx(t.Context(), p, theCall, neverTx(t)).want(t, "first", true)
}

// Of many callers of one key in two processes, one commits its statements.
func TestBatchWithManyCallers(t *testing.T) {
	t.Parallel()
	p, other, mem := pair(t, semel.Options{Wait: time.Minute})
	got := make([]answer, 20)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			got[i] = doBatch(t.Context(), []*process{p, other}[i%2], theCall, handing(fmt.Sprint(i), put(fmt.Sprint(i))))
		})
	}
	wg.Wait()
	for i, a := range got {
		a.want(t, got[0].v, a.replayed)
		wantEffect(t, mem, fmt.Sprint(i), fmt.Sprint(i) == got[0].v)
	}
}

// What fails leaves nothing, and is kept as the operation says, whether it was the
// function or a statement.
func TestBatchFails(t *testing.T) {
	t.Parallel()
	statement := func(err error) batchFunc {
		return handing("v", append(put("written"), func(*memory.Tx) error { return err }))
	}
	keep := semel.OperationOptions[string]{OnError: semel.Keep}
	for name, row := range map[string]struct {
		o    semel.OperationOptions[string]
		fn   batchFunc
		kept bool
	}{
		"function":         {fn: failingBatch(put("written"), errStatement)},
		"function, kept":   {o: keep, fn: failingBatch(nil, errStatement), kept: true},
		"function, final":  {fn: failingBatch(nil, semel.Final(errStatement)), kept: true},
		"statement":        {fn: statement(errStatement)},
		"statement, kept":  {o: keep, fn: statement(errStatement), kept: true},
		"statement, final": {fn: statement(semel.Final(errStatement)), kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, mem := solo(t, semel.Options{})
			call := plain("op", row.o).Call(me, "k", "in")
			a := doBatch(t.Context(), p, call, row.fn)
			check.Fails(t, a.err, "DoBatch")
			wantEffect(t, mem, "written", false)
			again := doBatch(t.Context(), p, call, handing("again", put("again")))
			wantEffect(t, mem, "again", !row.kept)
			if row.kept {
				again.wantFailure(t, errStatement.Error())
				return
			}
			a.wantErr(t, errStatement)
			check.Equal(t, semel.VerdictOf(a.err), store.NotCommitted, "verdict")
			again.want(t, "again", false)
		})
	}
}

// A batch takes over an enqueued call, and leaves a running one alone.
func TestBatchOverExistingRecords(t *testing.T) {
	t.Parallel()
	p, mem := solo(t, semel.Options{})
	doTx(t.Context(), p, theCall, func(context.Context, *memory.Tx) (string, error) {
		doBatch(t.Context(), p, theCall, handing("v", put("beside"))).wantErr(t, semel.ErrInProgress)
		return "", errStatement
	}).wantErr(t, errStatement)
	wantEffect(t, mem, "beside", false)
	queued := plain("queued", queueable(semel.OperationOptions[string]{})).Call(me, "k", "in")
	check.Must(semel.Enqueue(t.Context(), p, queued, semel.EnqueueOptions{}))(t)
	doBatch(t.Context(), p, queued, handing("v", put("after"))).want(t, "v", false)
	wantEffect(t, mem, "after", true)
}

// What DoBatch cannot do is refused before anything is run.
func TestBatchRejected(t *testing.T) {
	t.Parallel()
	p, _ := solo(t, semel.Options{})
	for name, o := range map[string]semel.OperationOptions[string]{
		"policy":     {Policy: semel.Hold()},
		"lease":      {Policy: semel.Atomic(), Lease: time.Second},
		"generation": {Generation: time.Hour},
	} {
		a := doBatch(t.Context(), p, plain("op", o).Call(me, "k", "in"), neverBatch(t))
		check.ErrorIs(t, a.err, semel.ErrInvalid, "DoBatch with a %s", name)
	}
	_, _, err := semel.DoBatch(t.Context(), p.Engine, theCall, func(ctx context.Context) (string, []string, error) {
		v, err := never(t)(ctx)
		return v, nil, err
	})
	check.ErrorIs(t, err, semel.ErrInvalid, "DoBatch of another kind of batch")
	doTx(t.Context(), p, theCall, func(ctx context.Context, _ *memory.Tx) (string, error) {
		doBatch(ctx, p, theCall, neverBatch(t)).wantErr(t, semel.ErrInvalid)
		return "v", nil
	}).want(t, "v", false)
}
