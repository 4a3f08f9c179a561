package realtest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// endLimit is how long goroutines may take to end after the tests. The PostgreSQL
// store closes its own connections up to two seconds after the pool it was given.
const endLimit = 15 * time.Second

// Main runs the tests of a package and returns the exit code. It is 1 if a goroutine
// outlives the tests, apart from those of this package.
func Main(m *testing.M, options ...goleak.Option) int {
	before := goleak.IgnoreCurrent() // of package variables: they end with the process
	code := m.Run()
	if code == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), endLimit)
		var leaked error
		options = append(options, before, goleak.IgnoreAnyFunction(Background))
		ended := Retry(ctx, func() bool {
			leaked = goleak.Find(options...)
			return leaked == nil
		})
		cancel()
		if ended != nil {
			fmt.Fprintln(os.Stderr, "goroutines outlive the tests:", leaked)
			code = 1
		}
	}
	return code
}

// Parallel lets at least n tests of the package run at a time. TestMain calls it in packages
// whose tests mostly wait: for leases, for processes, for answers that come late on purpose.
func Parallel(n int) {
	flag.Parse()                                                               //nolint:revive // TestMain calls it
	_ = flag.Set("test.parallel", strconv.Itoa(max(n, runtime.GOMAXPROCS(0)))) // each test binary has this flag
}
