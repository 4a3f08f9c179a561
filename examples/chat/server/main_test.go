package server_test

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
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
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(max(6, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// fullOnly skips a test in make test, for which it takes too long.
func fullOnly(t *testing.T) {
	t.Helper()
	onceIsEnough(t)
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
}

// fullUnraced is fullOnly for a test that runs without the race detector: of a page, or of servers that are
// processes and are killed, because a killed process cannot report races.
func fullUnraced(t *testing.T) {
	t.Helper()
	notRaced(t)
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
}

// notRaced skips a test under the race detector, which slows it down and finds nothing that the tests
// of the API do not show it. The run without the detector has the test.
func notRaced(t *testing.T) {
	t.Helper()
	if raced {
		t.Skip("it runs without the race detector")
	}
}

// onceIsEnough skips a test that make test-full has run under the race detector.
func onceIsEnough(t *testing.T) {
	t.Helper()
	if os.Getenv("SEMEL_RACED") == "1" {
		t.Skip("it has run under the race detector")
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
