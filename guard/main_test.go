package guard_test

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/semelgo/semel/internal/realtest"
)

// TestMain runs the tests, or the program of a child process.
func TestMain(m *testing.M) {
	switch os.Getenv("GUARD_CHILD") {
	case "receiver":
		runReceiverChild()
	case "commits":
		runCommitsChild()
	default:
		// Most tests wait for leases, so more of them run in parallel than there are processors.
		flag.Parse()
		if err := flag.Set("test.parallel", strconv.Itoa(max(8, runtime.GOMAXPROCS(0)))); err != nil {
			panic(err)
		}
		os.Exit(realtest.Main(m))
	}
}
