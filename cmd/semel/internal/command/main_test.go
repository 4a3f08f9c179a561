package command_test

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/semelgo/semel/cmd/semel/internal/command"
)

// TestMain runs the program if the first argument is one of its commands: the
// fixture starts its workers in this way.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "fixture" || os.Args[1] == "conform") {
		ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		os.Exit(command.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	flag.Parse()
	// Most tests spend their time waiting for leases.
	if err := flag.Set("test.parallel", strconv.Itoa(max(6, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
