// Command testrun runs the project's tests, shows how far they are, and ends
// with what ran and with counts.
//
//	go run ./internal/cmd/testrun [flags] [packages]
//
// Without packages it runs all of the module, and then those of the modules below
// it that -nested names.
//
// The first pass runs every package with the race detector and in shuffled
// order. The second runs, without the detector, the tests that ask for it by a
// build constraint: those in files that only a build without race takes. A test
// that ran in both passes is counted once.
//
// A test that ran on an engine (a store, a browser) says so with
// t.Attr("engine", name). Other attributes are shown beside the test's name.
//
// The last two lines name the engines and give the counts:
//
//	engines: chromium memory sqlite
//	412 passed, 0 failed, 3 skipped
//
// The exit code is 1 if anything failed, 2 if the tests could not be started.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// options is what the command line asks for.
type options struct {
	packages []string
	run      string        // as go test's -run; empty: all
	timeout  time.Duration // of one package
	race     bool
	nested   []string // directories of modules whose packages are run too
}

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		os.Exit(2)
	}
	failed, err := runAll(context.Background(), o, os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(2)
	case failed:
		os.Exit(1)
	}
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("testrun", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.run, "run", "", "run only tests that match, as go test's -run")
	flags.DurationVar(&o.timeout, "timeout", 20*time.Minute, "the longest one package may take")
	flags.BoolVar(&o.race, "race", true, "use the race detector in the first pass")
	flags.Func("nested", "a directory whose module's packages are run too, if none are named; may come again", func(dir string) error {
		o.nested = append(o.nested, dir)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.packages = flags.Args(); len(o.packages) == 0 {
		o.packages = []string{"./..."}
	} else {
		o.nested = nil
	}
	return o, nil
}

// runAll runs both passes and prints the summary. It reports whether anything
// failed.
func runAll(ctx context.Context, o options, out io.Writer) (failed bool, err error) {
	if o.race && !hasCompiler(ctx) {
		fmt.Fprintln(out, "No C compiler here: the race detector is off.")
		o.race = false
	}
	t := newTally()
	p := printer{out: out, tally: t, started: time.Now()}
	for _, dir := range append([]string{"."}, o.nested...) {
		if err := o.pass(ctx, &p, dir, o.packages, o.run, o.race); err != nil {
			return false, err
		}
	}
	if o.race {
		heavy, err := findHeavy(ctx, o.packages)
		if err != nil {
			return false, err
		}
		for _, h := range heavy {
			if err := o.passHeavy(ctx, &p, h); err != nil {
				return false, err
			}
		}
	}
	p.summary()
	return t.count(statusFail) > 0, nil
}

// hasCompiler reports whether the race detector can be linked.
func hasCompiler(ctx context.Context) bool {
	out, err := exec.CommandContext(ctx, "go", "env", "CGO_ENABLED").Output()
	return err == nil && len(out) > 0 && out[0] == '1'
}
