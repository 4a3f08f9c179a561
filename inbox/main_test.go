package inbox_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/semelgo/semel/internal/realtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(realtest.Background))
}
