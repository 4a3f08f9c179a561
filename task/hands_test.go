package task_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

// TestAGoroutineRunsOneFunctionAfterTheOther, so that each does not begin with a
// small stack.
func TestAGoroutineRunsOneFunctionAfterTheOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", outside(semel.AtLeastOnce()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		var on log[string]
		handle(r, op, func(context.Context, input) (int, error) {
			stack := make([]byte, 64)
			on.add(strings.Fields(string(stack[:runtime.Stack(stack, false)]))[1]) // goroutine N [running]:
			return 0, nil
		})
		defer r.start()()
		for n := range 10 {
			r.enqueue(op.Call(me, fmt.Sprint("k", n), input{n}))
			pass(time.Minute)
		}
		all := on.all()
		some := slices.Compact(slices.Sorted(slices.Values(all)))
		if len(all) != 10 || len(some) > 2 {
			t.Errorf("the functions ran on goroutines %v, want ten that share one or two", all)
		}
	})
}
