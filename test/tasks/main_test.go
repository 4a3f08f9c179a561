//go:build unix

package tasks_test

import (
	"os"
	"testing"

	"github.com/semelgo/semel/internal/realtest"
)

// childVariable tells the test binary to run as a child process, with its
// configuration.
const childVariable = "SEMEL_TASKS_CHILD"

// TestMain runs more tests in parallel than there are processors, because they
// mostly wait for leases. No process of a test outlives the tests.
func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		os.Exit(runChild(text))
	}
	realtest.Parallel(4)
	os.Exit(realtest.Main(m))
}

// soaking reports whether the tests run for longer.
func soaking() bool { return os.Getenv("SEMEL_SOAK") == "1" }

// rounds is n, or ten times as many when soaking.
func rounds(n int) int {
	if soaking() {
		return 10 * n
	}
	return n
}
