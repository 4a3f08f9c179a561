// Command semel tests how HTTP servers handle idempotency keys, and manages the
// records of operations.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/semelgo/semel/cmd/semel/internal/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	os.Exit(command.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
