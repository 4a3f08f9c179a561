package outbox_test

import (
	"os"
	"testing"

	"github.com/semelgo/semel/internal/realtest"
)

// TestMain ends the servers that tests have started, or runs a child process.
func TestMain(m *testing.M) {
	if file := os.Getenv(childVariable); file != "" {
		runChild(file)
		return
	}
	os.Exit(realtest.Main(m))
}
