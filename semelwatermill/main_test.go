package semelwatermill_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/semelgo/semel/internal/realtest"
)

func TestMain(m *testing.M) {
	if beConsumer() {
		return
	}
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction(realtest.Background),
		// Watermill's own deduplicator cannot be closed.
		goleak.IgnoreAnyFunction("github.com/ThreeDotsLabs/watermill/message/router/middleware.(*mapExpiringKeyRepository).cleanOutLoop"))
}

func beConsumer() bool { return false }
