package command_test

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/semelgo/semel/cmd/semel/internal/command"
	"github.com/semelgo/semel/internal/realtest"
)

// TestMain runs the program if the first argument is one of its commands: the
// fixture starts its workers in this way.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "fixture" || os.Args[1] == "conform") {
		ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		os.Exit(command.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	// Most tests spend their time waiting for leases.
	realtest.Parallel(6)
	os.Exit(m.Run())
}
