//go:build unix

package tasks_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// ceiling is how long a test waits for an event.
const ceiling = 5 * time.Minute

// process is a child process of the test.
type process struct {
	child
	*realtest.Process
}

// start runs a process, which is killed when the test ends.
func start(t *testing.T, c child) *process {
	t.Helper()
	config := check.Must(json.Marshal(c))(t)
	return &process{c, realtest.StartProcess(t, realtest.Self(t, childVariable+"="+string(config)))}
}

// endAll tells the processes to stop, and fails unless they end in an orderly way.
func endAll(t *testing.T, all []*process) {
	t.Helper()
	for _, p := range all {
		p.Command(t, "stop")
	}
	for _, p := range all {
		p.AwaitSuccess(t)
	}
}
