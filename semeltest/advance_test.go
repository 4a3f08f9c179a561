package semeltest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/plainstore/servers"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/semeltest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/storetest"
)

// TestAdvance lets the retention of a record pass, the delay of a task and that of its
// retry, over every store; with -short over three of them. A record in doubt stays.
func TestAdvance(t *testing.T) {
	t.Parallel()
	stores := map[string]func(t *testing.T) store.Store{
		"memory": func(*testing.T) store.Store { return memory.New(memory.Options{}) },
		"sqlite": func(t *testing.T) store.Store { return ledger.SQLite(t).Store },
		"postgres": func(t *testing.T) store.Store {
			url := realtest.Postgres(t).Database(t)
			return ledger.Postgres(t, url, url, postgres.Options{}).Store
		},
	}
	if !testing.Short() {
		stores["mysql"] = func(t *testing.T) store.Store {
			name := realtest.MariaDB(t).Database(t)
			return ledger.MariaDB(t, name, name).Store
		}
		stores["redis"] = func(t *testing.T) store.Store { return servers.Redis(t).Store(t) }
		stores["etcd"] = func(t *testing.T) store.Store { return servers.Etcd(t).Store(t) }
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Attr("engine", name)
			advances(t, open(t))
		})
	}
}

func advances(t *testing.T, s store.Store) {
	t.Helper()
	op := semel.Define("op", semel.OperationOptions[string]{Policy: semel.Hold(), Retention: time.Hour})
	delayed := semel.Define("delayed", semel.OperationOptions[string]{
		Policy: semel.AtLeastOnce(), Retry: &semel.Retry{Delay: func(int) time.Duration { return time.Hour }},
	})
	e := check.Must(semel.NewRunner(s, semel.Options{Survive: store.NoFailure, RecordTimeout: time.Minute, Operations: []semel.Declared{op, delayed}}))(t)
	t.Cleanup(func() { _ = e.Close(t.Context()) })
	run := func(c semel.Call, err error) {
		_, _, _ = semel.Do(t.Context(), e, c, func(context.Context) (string, error) { return "v", err })
	}
	run(op.Call(me, "done", "in"), nil)
	run(op.Call(me, "doubt", "in"), context.Canceled)
	check.Must(semel.Enqueue(t.Context(), e, delayed.Call(me, "k", "in"), semel.EnqueueOptions{Delay: 2 * time.Hour}))(t)
	runs := 0
	w := newWorker(t, e, delayed, func(context.Context, string) (string, error) {
		if runs++; runs == 1 {
			return "", context.Canceled
		}
		return "v", nil
	})
	for _, step := range []struct {
		pass   time.Duration
		purged int
		runs   int
	}{{0, 0, 0}, {time.Hour - time.Minute, 0, 0}, {time.Minute, 1, 0}, {time.Hour, 0, 1}, {time.Hour - time.Minute, 0, 0}, {time.Minute, 0, 1}} {
		semeltest.Advance(t, s, step.pass)
		check.Equal(t, check.Must(admin.Purge(t.Context(), e, 10))(t), step.purged, "purged")
		check.Equal(t, semeltest.RunDue(t, w), step.runs, "runs")
	}
	left := check.Must(admin.List(t.Context(), e, store.Query{State: store.InDoubt}))(t)
	check.Equal(t, len(left), 1, "records in doubt")
}

// TestAdvanceMovesAllPages: a store may return a part of the records at a time.
func TestAdvanceMovesAllPages(t *testing.T) {
	t.Parallel()
	mem := memory.New(memory.Options{})
	op := semel.Define("op", semel.OperationOptions[int]{Policy: semel.AtLeastOnce(), Retry: &semel.Retry{}})
	e := newEngine(t, mem, op)
	for i := range 2*store.MaxLimit + 1 {
		check.Must(semel.Enqueue(t.Context(), e, op.Call(me, string(rune('a'+i)), i), semel.EnqueueOptions{Delay: time.Hour}))(t)
	}
	semeltest.Advance(t, mem, time.Hour)
	counts := check.Must(mem.Counts(t.Context()))(t)
	check.Equal(t, counts[0].Overdue, int64(2*store.MaxLimit+1), "due tasks")
}

// TestAdvanceFails: it names what keeps time from passing.
func TestAdvanceFails(t *testing.T) {
	t.Parallel()
	mem := memory.New(memory.Options{})
	op := semel.Define("op", semel.OperationOptions[string]{})
	e := newEngine(t, mem)
	for want, s := range map[string]store.Store{
		"injected":         storetest.NewFaulty(mem, func(storetest.Call) storetest.Fault { return storetest.Refuse() }),
		"open transaction": storetest.NewFaulty(mem, func(c storetest.Call) storetest.Fault { return storetest.Fault{Busy: c.Method == "Swap"} }),
	} {
		_, _, err := semel.DoTx(t.Context(), e, op.Call(me, want, "in"), func(context.Context, *memory.Tx) (string, error) { return "v", nil })
		check.NoError(t, err)
		f := &failed{TB: t}
		f.run(func() { semeltest.Advance(f, s, time.Second) })
		if !strings.Contains(f.text, want) {
			t.Errorf("the failure is %q, want %q in it", f.text, want)
		}
	}
}
