// Command chat is the reference application of Semel: a chat server whose group
// creation happens once, even if a process is killed, a reply is lost or a request is repeated.
//
// Run it and open the page:
//
//	go run ./examples/chat -addr 127.0.0.1:8080 -db sqlite:chat.db
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/semelgo/semel/examples/chat/load"
	"github.com/semelgo/semel/examples/chat/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	if args := os.Args[1:]; len(args) > 0 && args[0] == "load" {
		os.Exit(load.Main(ctx, args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(server.Main(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}
