package conform_test

import (
	"os"
	"testing"

	"github.com/semelgo/semel/internal/realtest"
)

// TestMain runs many tests at a time: the cases wait for requests to arrive and for the next
// second of a Date header.
func TestMain(m *testing.M) {
	realtest.Parallel(8)
	os.Exit(m.Run())
}
