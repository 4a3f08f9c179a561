package shop_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/checkout/shop"
	payment "github.com/semelgo/semel/examples/payment/server"
	"github.com/semelgo/semel/internal/realtest"
)

// childVariable makes the test binary run the shop or the payment service instead of the
// tests, so that a test can kill it.
const childVariable = "SEMEL_CHECKOUT_CHILD"

func TestMain(m *testing.M) {
	programs := map[string]func(ctx context.Context, args []string, stdout, stderr io.Writer) int{"shop": shop.Main, "payment": payment.Main}
	program, ok := programs[os.Getenv(childVariable)]
	if !ok {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	os.Exit(program(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// rounds is how often the kill test kills: n times, or 25 times in `make soak`.
func rounds(n int) int {
	if os.Getenv("SEMEL_SOAK") == "1" {
		return 25
	}
	return n
}

// patience is how long a test waits for something that must happen.
const patience = 2 * time.Minute

// process is a program in a process of its own. It keeps its address when it is
// started again.
type process struct{ *realtest.Restartable }

func newProcess(t *testing.T, program string, args ...string) *process {
	t.Helper()
	return &process{realtest.StartRestartable(t, func(addr string) *exec.Cmd {
		return realtest.Self(t, childVariable+"="+program, append([]string{"-addr", addr}, args...)...)
	})}
}

// stop ends the process as an operator does.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	p.AwaitSuccess(t)
}
