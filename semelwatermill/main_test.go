package semelwatermill_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/semelgo/semel/internal/realtest"
)

func TestMain(m *testing.M) {
	if beConsumer() {
		return
	}
	os.Exit(realtest.Main(m,
		// Watermill's own deduplicator cannot be closed.
		goleak.IgnoreAnyFunction("github.com/ThreeDotsLabs/watermill/message/router/middleware.(*mapExpiringKeyRepository).cleanOutLoop")))
}

func beConsumer() bool { return false }
