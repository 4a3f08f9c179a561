//go:build unix

package messages_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// process is a consumer that runs as a child.
type process struct{ *realtest.Process }

// counters counts the reports of all consumers of a test.
type counters struct {
	mu        sync.Mutex
	processes []process
}

// count counts the lines with a word.
func (m *counters) count(word string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, p := range m.processes {
		for _, line := range p.Lines() {
			if slices.Contains(strings.Fields(line), word) {
				n++
			}
		}
	}
	return n
}

// start runs a consumer. It is killed when the test ends.
func start(t *testing.T, c consumer, seen *counters) process {
	t.Helper()
	config := check.Must(json.Marshal(c))(t)
	p := process{realtest.StartProcess(t, realtest.Self(t, childVariable+"="+string(config)))}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	seen.processes = append(seen.processes, p)
	return p
}

// killedAt waits until the consumer has killed itself at the point.
func (p process) killedAt(t *testing.T, point string) {
	t.Helper()
	p.Await(t, "reached "+point)
	p.AwaitKilled(t)
}

// stop ends a consumer in an orderly way.
func (p process) stop(t *testing.T) {
	t.Helper()
	p.CloseInput()
	p.AwaitSuccess(t)
}
