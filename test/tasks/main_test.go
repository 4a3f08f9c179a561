//go:build unix

package tasks_test

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/semelgo/semel/internal/realtest"
)

// childVariable tells the test binary to be one of a test's processes, and how.
const childVariable = "SEMEL_TASKS_CHILD"

// TestMain lets more tests run at a time than there are processors, because most of
// what they do is to wait for a lease. Nothing but what is named for it outlives
// them.
func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		os.Exit(beChild(text))
	}
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(realtest.Background))
}

// soaking tells whether tests take their time.
func soaking() bool { return os.Getenv("SEMEL_SOAK") == "1" }

// rounds is n, or ten times as many when soaking.
func rounds(n int) int {
	if soaking() {
		return 10 * n
	}
	return n
}
