package server_test

import (
	"os"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/realtest"
)

// childVariable makes the test binary run as a child process: a chat server that
// kills itself at a given point.
const childVariable = "SEMEL_CHAT_CHILD"

// TestMain runs more tests in parallel than there are processors, because most of
// them wait for a lease to expire.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(runChild())
	}
	realtest.Parallel(6)
	os.Exit(m.Run())
}

// shortLease is long enough for a creation on a busy machine, and short enough that
// a test can wait for its expiry often.
const shortLease = 500 * time.Millisecond

// fullOnly skips a test in make test, for which it takes too long.
func fullOnly(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
}

// soaking reports whether the long versions of tests run.
func soaking() bool { return os.Getenv("SEMEL_SOAK") == "1" }

// rounds returns n, or many more for the long versions.
func rounds(n int) int {
	if soaking() {
		return max(50, 5*n)
	}
	return n
}
