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

// TestMain lets the test binary be the program, when its first argument is one
// of the program's commands: the fixture starts its workers so.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "fixture" || os.Args[1] == "conform") {
		ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		os.Exit(command.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	flag.Parse()
	// Most of what the tests do is to wait for a lease.
	if err := flag.Set("test.parallel", strconv.Itoa(max(6, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
