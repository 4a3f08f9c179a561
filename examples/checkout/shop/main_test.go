package shop_test

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/semelgo/semel/examples/checkout/shop"
)

// childVariable makes the test binary run the shop instead of the tests, so that a
// test can kill it.
const childVariable = "SEMEL_CHECKOUT_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	os.Exit(shop.Main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// rounds is how often the kill test kills: n times, or 25 times in `make soak`.
func rounds(n int) int {
	if os.Getenv("SEMEL_SOAK") == "1" {
		return 25
	}
	return n
}
