package realtest_test

import (
	"os"
	"testing"

	"github.com/semelgo/semel/internal/realtest"
)

// Nothing but what is named for it outlives the tests.
func TestMain(m *testing.M) {
	os.Exit(realtest.Main(m))
}
