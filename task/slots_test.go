package task_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

// concurrency counts the functions that run at a time, and the maximum of that
// count.
type concurrency struct {
	mu        sync.Mutex
	now, most int
}

// count runs fn and counts it as running.
func (g *concurrency) count(fn func()) {
	g.mu.Lock()
	g.now++
	g.most = max(g.most, g.now)
	g.mu.Unlock()
	fn()
	g.mu.Lock()
	g.now--
	g.mu.Unlock()
}

func (g *concurrency) want(t *testing.T, what string, most int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.most != most || g.now != 0 {
		t.Errorf("%s: at most %d ran at a time and %d still do, want %d and none", what, g.most, g.now, most)
	}
}

func TestConcurrencyLimits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		few, many := semel.Define("few", leasedOptions(semel.Hold())), semel.Define("many", leasedOptions(semel.Hold()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{Slots: 7}, few, many)
		var all, ofFew, ofMany concurrency
		lasts := func(of *concurrency) func(context.Context, input) (int, error) {
			return func(context.Context, input) (int, error) {
				all.count(func() { of.count(func() { <-time.After(time.Minute) }) })
				return 0, nil
			}
		}
		handle(r, few, lasts(&ofFew), task.HandlerOptions{Concurrency: 2})
		handle(r, many, lasts(&ofMany), task.HandlerOptions{Concurrency: 100})
		for i := range 40 {
			if i < 6 {
				r.enqueue(few.Call(me, fmt.Sprint(i), input{}))
			}
			r.enqueue(many.Call(me, fmt.Sprint(i), input{}))
		}
		defer r.start()()
		sleep(time.Hour)
		all.want(t, "all", 7)
		ofFew.want(t, "the kind with a limit of 2", 2)
		ofMany.want(t, "the other kind", 7) // once the tasks of the limited operation have ended
	})
}

// TestFreeSlotsAreSharedBetweenOperations: of two long queues neither gets all
// free slots.
func TestFreeSlotsAreSharedBetweenOperations(t *testing.T) {
	bubble(t, func(t *testing.T) {
		one, two := semel.Define("one", leasedOptions(semel.Hold())), semel.Define("two", leasedOptions(semel.Hold()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{Slots: 9}, one, two)
		var ran syncList[string]
		for _, op := range []*semel.Operation[input]{one, two} {
			handle(r, op, func(context.Context, input) (int, error) {
				ran.add(op.Name())
				<-time.After(time.Hour)
				return 0, nil
			})
			for i := range 20 {
				r.enqueue(op.Call(me, fmt.Sprint(i), input{}))
			}
		}
		defer r.start()()
		sleep(time.Minute)
		got := ran.all()
		slices.Sort(got)
		if diff := cmp.Diff(strings.Fields("one one one one one two two two two"), got); diff != "" {
			t.Errorf("the running tasks differ (-want +got):\n%s", diff)
		}
	})
}

// TestNoOperationStarvesAnother: a long and a short queue take turns with one
// slot.
func TestNoOperationStarvesAnother(t *testing.T) {
	bubble(t, func(t *testing.T) {
		long, short := semel.Define("long", leasedOptions(semel.Hold())), semel.Define("short", leasedOptions(semel.Hold()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{Slots: 1}, long, short)
		var ran syncList[string]
		handle(r, long, func(context.Context, input) (int, error) {
			ran.add("long")
			<-time.After(time.Second)
			return 0, nil
		})
		handle(r, short, func(context.Context, input) (int, error) {
			ran.add("short")
			<-time.After(time.Second)
			return 0, nil
		})
		for i := range 20 {
			r.enqueue(long.Call(me, fmt.Sprint(i), input{}))
		}
		for i := range 3 {
			r.enqueue(short.Call(me, fmt.Sprint(i), input{}))
		}
		defer r.start()()
		sleep(time.Minute)
		want := []string{"long", "short", "long", "short", "long", "short", "long"}
		if got := ran.all(); len(got) != 23 || !slices.Equal(got[:len(want)], want) {
			t.Errorf("ran %v, want them to take turns", got)
		}
	})
}

func TestHigherPriorityGoesFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.Hold()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{Slots: 1}, op)
		var ran syncList[int]
		handle(r, op, func(_ context.Context, in input) (int, error) {
			ran.add(in.N)
			return 0, nil
		})
		for _, priority := range []int{0, -4, 4, 1, -1} {
			r.enqueue(op.Call(me, fmt.Sprint(priority), input{priority}), semel.EnqueueOptions{Priority: priority})
			sleep(time.Second)
		}
		r.enqueue(op.Call(me, "late", input{100}), semel.EnqueueOptions{Priority: 1})
		defer r.start()()
		sleep(time.Minute)
		if diff := cmp.Diff([]int{4, 1, 100, 0, -1, -4}, ran.all()); diff != "" {
			t.Errorf("the order differs (-want +got):\n%s", diff)
		}
	})
}

// TestTaskRunsWhenDue, and not before.
func TestTaskRunsWhenDue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.Hold()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		begun := time.Now()
		at := make(map[int]time.Duration)
		var mu sync.Mutex
		handle(r, op, func(_ context.Context, in input) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			at[in.N] = time.Since(begun)
			return 0, nil
		})
		r.enqueue(op.Call(me, "1", input{1}), semel.EnqueueOptions{Delay: time.Hour})
		r.enqueue(op.Call(me, "2", input{2}), semel.EnqueueOptions{At: begun.Add(2 * time.Hour)})
		r.enqueue(op.Call(me, "0", input{0}), semel.EnqueueOptions{At: begun.Add(-time.Hour)})
		sooner := op.Call(me, "3", input{3})
		r.enqueue(sooner, semel.EnqueueOptions{Delay: 24 * time.Hour})
		defer r.start()()
		sleep(30 * time.Minute)
		if _, err := admin.Reschedule(t.Context(), r, sooner.ID(), 150*time.Minute); err != nil {
			t.Errorf("Reschedule: %v", err)
		}
		sleep(4 * time.Hour)
		for n, want := range []time.Duration{0, time.Hour, 2 * time.Hour, 3 * time.Hour} {
			if got := at[n]; got < want || got > want+2*time.Second {
				t.Errorf("task %d ran after %v, want soon after %v", n, got, want)
			}
		}
	})
}

// TestWakeNeedsNoPoll: Wake starts a task without waiting for the poll
// interval.
func TestWakeNeedsNoPoll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.Hold()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{Poll: 24 * time.Hour}, op)
		handle(r, op, func(context.Context, input) (int, error) { return 0, nil })
		defer r.start()()
		sleep(time.Second)
		call := op.Call(me, "k", input{})
		r.enqueue(call)
		sleep(time.Second)
		r.wantState(call, store.Pending)
		r.worker.Wake()
		r.worker.Wake() // never blocks
		sleep(time.Second)
		r.wantState(call, store.Succeeded)
	})
}

// TestFullBatchIsFollowedByAnother at once: a worker empties a long queue
// without waiting for the poll interval.
func TestFullBatchIsFollowedByAnother(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.Hold()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{Slots: 150, Poll: 24 * time.Hour}, op)
		handle(r, op, func(context.Context, input) (int, error) { return 0, nil })
		const n = 1000
		for i := range n {
			r.enqueue(op.Call(me, fmt.Sprint(i), input{}))
		}
		defer r.start()()
		sleep(time.Second)
		counts, err := task.Counts(t.Context(), r.mem, "op", "none")
		want := []task.Count{{Operation: "op", Succeeded: n}, {Operation: "none"}}
		if diff := cmp.Diff(want, counts); diff != "" || err != nil {
			t.Errorf("the counts differ (-want +got), %v:\n%s", err, diff)
		}
	})
}

func TestCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", atomicOptions())
		hold := semel.Define("hold", leasedOptions(semel.Hold()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op, hold)
		handleTx(r, op, func(ctx context.Context, _ *memory.Tx, in input) (int, error) {
			if in.N == 1 {
				return 0, semel.Final(errBoom)
			}
			<-ctx.Done()
			return 0, ctx.Err()
		})
		handle(r, hold, func(context.Context, input) (int, error) { return 0, errBoom })
		r.enqueue(op.Call(me, "fails", input{1}))
		r.enqueue(op.Call(me, "runs", input{}))
		r.enqueue(hold.Call(me, "doubt", input{}))
		stop := r.start()
		sleep(time.Minute)
		r.enqueue(op.Call(me, "later", input{}), semel.EnqueueOptions{Delay: time.Hour})
		counts, err := task.Counts(t.Context(), r.mem, "op", "hold")
		want := []task.Count{{Operation: "op", Waiting: 1, Running: 1, Failed: 1}, {Operation: "hold", InDoubt: 1}}
		if diff := cmp.Diff(want, counts); diff != "" || err != nil {
			t.Errorf("the counts differ (-want +got), %v:\n%s", err, diff)
		}
		stop()
		sleep(2 * time.Hour)
		counts, _ = task.Counts(t.Context(), r.mem, "op")
		if diff := cmp.Diff([]task.Count{{Operation: "op", Waiting: 2, Due: 2, Failed: 1}}, counts); diff != "" {
			t.Errorf("the counts differ (-want +got):\n%s", diff)
		}
	})
}
