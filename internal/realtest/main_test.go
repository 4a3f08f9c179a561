package realtest_test

import (
	"os"
	"testing"

	"github.com/semelgo/semel/internal/realtest"
)

// Nothing but what is named for it outlives the tests.
func TestMain(m *testing.M) {
	realtest.Parallel(4) // servers take long to start, and to notice each other
	os.Exit(realtest.Main(m))
}
