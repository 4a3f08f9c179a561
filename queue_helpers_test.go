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

// soloCall starts a process over a store of its own, and returns a call of an operation.
func soloCall(t *testing.T, o semel.OperationOptions[string]) (*process, semel.Call) {
	t.Helper()
	return soloWith(t, semel.Options{}, o)
}

// soloWith is soloCall for a process with options.
func soloWith(t *testing.T, o semel.Options, oo semel.OperationOptions[string]) (*process, semel.Call) {
	t.Helper()
	p, _ := solo(t, o)
	return p, plain("op", oo).Call(me, "k", "in")
}

// pairCall is soloCall with another process over the same store.
func pairCall(t *testing.T, o semel.OperationOptions[string]) (p, other *process, call semel.Call) {
	t.Helper()
	p, call = soloCall(t, o)
	return p, start(t, p.mem, semel.Options{}), call
}

// task is an operation that workers run, with these limits.
func task(p semel.Policy, maxErrors, maxCrashes int) *semel.Operation[string] {
	return plain("op", semel.OperationOptions[string]{Policy: p, Retry: steady(maxErrors, maxCrashes)})
}

// ownedTask starts a process that was given a task, over a store of its own.
func ownedTask(t *testing.T, p semel.Policy, maxErrors, maxCrashes int) (*process, *semel.Operation[string]) {
	t.Helper()
	op := task(p, maxErrors, maxCrashes)
	own, _ := owned(t, op)
	return own, op
}

// queuedTask is ownedTask with one call that waits.
func queuedTask(t *testing.T, p semel.Policy, maxErrors, maxCrashes int) (*process, *semel.Operation[string], semel.Call) {
	t.Helper()
	own, op := ownedTask(t, p, maxErrors, maxCrashes)
	return own, op, queued(t, own, op, "k")[0]
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
		check.Result(semel.Enqueue(t.Context(), p, call, semel.EnqueueOptions{}))(t, true, "Enqueue")
		calls = append(calls, call)
	}
	return calls
}

// dequeued claims all that waits. What the test does not end is abandoned.
func dequeued(t *testing.T, p *process, op semel.Declared, want int) []*semel.Attempt {
	t.Helper()
	return dequeuedUpTo(t, p, op, 100, want)
}

func dequeuedOne(t *testing.T, p *process, op semel.Declared) *semel.Attempt {
	t.Helper()
	return dequeuedUpTo(t, p, op, 1, 1)[0]
}

func dequeuedUpTo(t *testing.T, p *process, op semel.Declared, limit, want int) []*semel.Attempt {
	t.Helper()
	attempts, err := adapter.Dequeue(t.Context(), p, op, limit)
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

// eachFaultyCall runs test for each fault of each of the first calls of the store, in a bubble of
// its own.
func eachFaultyCall(t *testing.T, calls int, test func(t *testing.T, f fault, k int)) {
	t.Helper()
	numbers := map[string]int{}
	for k := range calls {
		numbers[fmt.Sprint(k+1)] = k + 1
	}
	eachPair(t, everyFault(), numbers, test)
}
