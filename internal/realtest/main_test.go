package realtest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/semelgo/semel/internal/realtest"
)

// Nothing but what is named for it outlives the tests.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(realtest.Background))
}
