package guard_test

import (
	"os"
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
		os.Exit(realtest.Main(m))
	}
}
