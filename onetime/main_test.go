package onetime_test

import (
	"os"
	"testing"

	"github.com/semelgo/semel/internal/realtest"
)

// TestMain runs the test binary as a child process if a test has asked for one.
func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		os.Exit(runChild(text))
	}
	os.Exit(realtest.Main(m))
}
