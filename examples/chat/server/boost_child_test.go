//go:build unix

package server_test

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	payment "github.com/semelgo/semel/examples/payment/server"
)

// paymentChild runs the payment service as a child process.
func paymentChild() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return payment.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
}
