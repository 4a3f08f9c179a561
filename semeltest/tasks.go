package semeltest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/task"
)

// RunDue runs the tasks that are due, once, and returns how many runs it started: see
// [task.Worker.RunDue]. With [Advance] a test reaches the tasks that are due later and the
// retries of failed ones. It fails the test if w cannot run; a task that fails does not
// fail the test.
func RunDue(t testing.TB, w *task.Worker) (runs int) {
	t.Helper()
	runs, err := w.RunDue(t.Context())
	if err != nil {
		t.Fatalf("semeltest: RunDue: %v", err)
	}
	return runs
}

// listed is how many waiting calls a failure shows.
const listed = 20

// RequireEnqueued fails the test unless c is enqueued and has not been run: a Pending record
// has its operation, scope, key and input. It returns the record, whose Due and Priority
// the test may check. The failure lists the calls that are enqueued instead. c must be of
// an operation whose keys carry no time.
func RequireEnqueued(t testing.TB, e semel.Runner, c semel.Call) store.Record {
	t.Helper()
	records, err := adapter.Records(t.Context(), e, []semel.Call{c})
	if err != nil {
		t.Fatalf("semeltest: RequireEnqueued: %v", err)
	}
	r := records[0]
	same := r.State != store.Absent && c.Compare(r) == protocol.SameRequest
	if same && r.State == store.Pending {
		return r
	}
	found := "it has no record"
	switch {
	case same:
		found = fmt.Sprintf("it has been run: the record is %s, attempt %d", r.State, r.Attempt)
	case r.State != store.Absent:
		found = fmt.Sprintf("its key is used with another input: %s", r.Input)
	}
	t.Fatalf("semeltest: %s is not enqueued: %s.\nEnqueued:%s", showCall(c.Operation(), c.Scope().Bytes(), c.Key()), found, enqueued(t, e))
	return r
}

// enqueued lists the Pending records.
func enqueued(t testing.TB, e semel.Runner) string {
	t.Helper()
	records, err := admin.List(t.Context(), e, store.Query{State: store.Pending, Limit: listed})
	switch {
	case err != nil:
		return " unknown: " + err.Error()
	case len(records) == 0:
		return " nothing"
	}
	var b strings.Builder
	for _, r := range records {
		fmt.Fprintf(&b, "\n  %s, input %s", showCall(r.Operation, r.Scope, r.Key), r.Input)
		if r.Due > 0 {
			fmt.Fprintf(&b, ", due in %v", r.Due)
		}
	}
	if len(records) == listed {
		b.WriteString("\n  and perhaps more")
	}
	return b.String()
}

func showCall(operation, scope, key string) string {
	return fmt.Sprintf("%s with scope %q and key %q", operation, scope, key)
}
