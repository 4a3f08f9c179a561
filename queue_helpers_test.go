package semel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// owned starts a process that was given op, over a store of its own.
func owned(t *testing.T, op semel.Declared) (*process, *memory.Store) {
	t.Helper()
	return solo(t, semel.Options{Operations: []semel.Declared{op}})
}

// steady is how operations are tried again in these tests: 10 s after the first
// error, 20 s after the second, and so on.
func steady(maxErrors, maxCrashes int) *semel.Retry {
	return &semel.Retry{
		MaxErrors: maxErrors, MaxCrashes: maxCrashes,
		Delay: func(errors int) time.Duration { return time.Duration(errors) * 10 * time.Second },
	}
}

// queued enqueues a call of op for each key, with itself as the input.
func queued(t *testing.T, p *process, op *semel.Operation[string], keys ...string) []semel.Call {
	t.Helper()
	calls := make([]semel.Call, 0, len(keys))
	for _, key := range keys {
		call := op.Call(me, key, key)
		if added, err := semel.Enqueue(t.Context(), p, call, semel.EnqueueOptions{}); !added || err != nil {
			t.Fatalf("Enqueue = %v, %v, want it added", added, err)
		}
		calls = append(calls, call)
	}
	return calls
}

// dequeued claims what waits. What the test does not end is abandoned.
func dequeued(t *testing.T, p *process, op semel.Declared, want int) []*semel.Attempt {
	t.Helper()
	attempts, err := adapter.Dequeue(t.Context(), p, op, 100)
	if err != nil || len(attempts) != want {
		t.Fatalf("Dequeue = %d attempts, %v, want %d", len(attempts), err, want)
	}
	for _, a := range attempts {
		t.Cleanup(a.Abandon)
	}
	return attempts
}

// work runs what waits as a worker does, one attempt of it.
func work(t *testing.T, p *process, op semel.Declared, fn handler) answer {
	t.Helper()
	return workIn(t.Context(), t, p, op, fn)
}

func workIn(ctx context.Context, t *testing.T, p *process, op semel.Declared, fn handler) answer {
	t.Helper()
	attempts, err := adapter.Dequeue(ctx, p, op, 1)
	if err != nil || len(attempts) != 1 {
		t.Fatalf("Dequeue = %d attempts, %v, want one", len(attempts), err)
	}
	a := attempts[0]
	defer a.Abandon()
	if out, err := a.Prepare(); out != nil || err != nil {
		return answerOf(out, err)
	}
	v, err := fn(a.Context())
	return answerOf(a.End(v, err))
}

func answerOf(out *adapter.Outcome, err error) answer {
	if err != nil {
		return answer{err: err}
	}
	var v string
	err = out.Decode(&v)
	return answer{v, out.Replayed, err}
}

// progress returns what the record of c says of its attempts.
func progress(t *testing.T, mem *memory.Store, c semel.Call) admin.Progress {
	t.Helper()
	p, ok := admin.ProgressOf(record(t, mem, c))
	if !ok {
		t.Errorf("the record of %v says nothing of its attempts", record(t, mem, c).Token)
	}
	return p
}

// wantTries checks the kinds of the tries that are known of.
func wantTries(t *testing.T, p admin.Progress, want ...admin.TryKind) {
	t.Helper()
	var got []admin.TryKind
	for _, try := range p.Tries {
		got = append(got, try.Kind)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("tried as %v, want %v", got, want)
	}
}

// wantCode checks a caller's failure and its progress.
func wantCode(t *testing.T, err error, code string) admin.Progress {
	t.Helper()
	var p admin.Progress
	failure, ok := errtype.Find[*semel.Failure](err)
	if !ok || failure.Code != code {
		t.Errorf("got %v, want a failure of code %q", err, code)
		return p
	}
	check.NoError(t, json.Unmarshal(failure.Details, &p), "its details %s are no history", failure.Details)
	return p
}

// wantDue checks when a record that waits is due, to the second.
func wantDue(t *testing.T, r store.Record, want time.Duration) {
	t.Helper()
	if got := max(r.Due, 0).Round(time.Second); r.State != store.Pending || got != want {
		t.Errorf("it is %v and due in %v, want it Pending and due in %v", r.State, got, want)
	}
}

// queueable is o with a Retry, without which no worker runs the calls.
func queueable(o semel.OperationOptions[string]) semel.OperationOptions[string] {
	if o.Retry == nil {
		o.Retry = &semel.Retry{Delay: func(int) time.Duration { return 0 }}
	}
	return o
}
