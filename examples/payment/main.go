// Command payment is a stub of a payment service. It accepts every charge once per
// Idempotency-Key, and counts the charges.
//
//	go run ./examples/payment -addr 127.0.0.1:8081 -db sqlite:payment.db
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/semelgo/semel/examples/payment/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	os.Exit(server.Main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
