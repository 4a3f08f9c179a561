// Command checkout is a small shop: it charges a customer at a payment service,
// records the payment in its own PostgreSQL database, mails a receipt, and tells
// the warehouse over RabbitMQ to ship the order. Each of these happens once for
// each order, however often the customer's client retries and whichever process is
// killed on the way.
//
//	go run ./examples/checkout -db postgres://… -payments http://shop@127.0.0.1:8081 -amqp amqp://…
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/semelgo/semel/examples/checkout/shop"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	os.Exit(shop.Main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
