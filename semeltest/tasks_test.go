package semeltest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semeltest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

func newWorker(t *testing.T, e semel.Runner, op *semel.Operation[string], fn func(context.Context, string) (string, error)) *task.Worker {
	t.Helper()
	w := check.Must(task.New(e, task.Options{}))(t)
	check.Require(t, task.Handle(w, op, fn, task.HandlerOptions{}), "Handle")
	return w
}

// failed is a test that may fail. It keeps the text of its failure.
type failed struct {
	testing.TB

	text     string
	cleanups []func()
}

func (f *failed) Helper()                        {}
func (f *failed) Cleanup(fn func())              { f.cleanups = append(f.cleanups, fn) }
func (f *failed) Error(args ...any)              { f.text += fmt.Sprint(args...) }
func (f *failed) Errorf(format string, a ...any) { f.text += fmt.Sprintf(format, a...) }
func (f *failed) Fatalf(format string, a ...any) { f.Errorf(format, a...); panic(f) }
func (f *failed) run(test func())                { defer func() { _ = recover() }(); test() }
func (f *failed) end() {
	for _, fn := range f.cleanups {
		fn()
	}
}

// TestRequireEnqueued: it returns the record of an enqueued call. For any other call it says
// what is enqueued instead.
func TestRequireEnqueued(t *testing.T) {
	t.Parallel()
	op := semel.Define("send_receipt", semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Retry: &semel.Retry{}})
	mem := memory.New(memory.Options{})
	e := newEngine(t, mem, op)
	require := func(c semel.Call) (r store.Record, failure string) {
		f := &failed{TB: t}
		f.run(func() { r = semeltest.RequireEnqueued(f, e, c) })
		return r, f.text
	}
	call := op.Call(me, "order 7", "ann@example.com")
	_, failure := require(call)
	wantInFailure(t, failure, "send_receipt", "order 7", "no record", "nothing")

	check.Must(semel.Enqueue(t.Context(), e, call, semel.EnqueueOptions{Delay: time.Hour, Priority: 2}))(t)
	r, failure := require(call)
	check.Equal(t, failure, "", "failure")
	check.Equal(t, r.Priority, 2, "priority")
	check.Equal(t, r.Due > time.Minute, true, "due later")

	_, failure = require(op.Call(me, "order 8", "ann@example.com"))
	wantInFailure(t, failure, "order 8", "no record", "order 7", "due in", `"ann@example.com"`)
	_, failure = require(op.Call(me, "order 7", "bob@example.com"))
	wantInFailure(t, failure, "another input", `"ann@example.com"`)

	semeltest.Advance(t, mem, time.Hour)
	w := newWorker(t, e, op, func(context.Context, string) (string, error) { return "sent", nil })
	check.Equal(t, semeltest.RunDue(t, w), 1, "runs")
	_, failure = require(call)
	wantInFailure(t, failure, "has been run", "Succeeded", "nothing")
}

func wantInFailure(t *testing.T, failure string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(failure, part) {
			t.Errorf("the failure is %q, want %q in it", failure, part)
		}
	}
}

// TestExamples runs the tests of the examples.
func TestExamples(t *testing.T) {
	t.Run("pay", testPay)
	t.Run("order", testOrder)
}
