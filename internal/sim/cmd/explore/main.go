// Command explore runs the explorations that take long: three callers, and two
// of each, in every mode. It prints how far it has got, and ends with 1 when an
// invariant is broken or a plan never came to what it is about.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/semelgo/semel/internal/sim"
)

func main() {
	debug.SetGCPercent(1600)                       // worlds are small and short-lived
	slog.SetDefault(slog.New(slog.DiscardHandler)) // their engines have many alarms
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("explore", flag.ContinueOnError)
	only := flags.String("plan", "", "explore only the plan of this name, or plans with this in their name, of the gate too")
	watch := flags.String("watch", "", "only this invariant counts")
	replay := flags.String("replay", "", "print the run that this line describes")
	workers := flags.Int("j", runtime.GOMAXPROCS(0), "plans explored at a time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *replay != "" {
		return printRun(out, *replay)
	}
	plans := sim.Deep()
	if *only != "" {
		plans = named(*only)
	}
	if len(plans) == 0 {
		return fmt.Errorf("no plan has %q in its name", *only)
	}
	var o sim.Options
	if *watch != "" {
		o.Watch = []string{*watch}
	}
	return exploreAll(out, plans, o, max(*workers, 1))
}

func named(part string) []sim.Plan {
	var plans []sim.Plan
	for _, p := range append(sim.Gate(), sim.Deep()...) {
		if p.Name == part {
			return []sim.Plan{p}
		}
		if strings.Contains(p.Name, part) {
			plans = append(plans, p)
		}
	}
	return plans
}

func printRun(out io.Writer, line string) error {
	lines, v, err := sim.Replay(line, append(sim.Gate(), sim.Deep()...))
	if err != nil {
		return err
	}
	fmt.Fprintln(out, strings.Join(lines, "\n"))
	if v != nil {
		return fmt.Errorf("%s is broken: %s", v.Invariant, v.Text)
	}
	return nil
}

func exploreAll(out io.Writer, plans []sim.Plan, o sim.Options, workers int) error {
	var (
		mu     sync.Mutex // guards out and failed
		failed []error
		wg     sync.WaitGroup
		queue  = make(chan sim.Plan)
	)
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, format+"\n", args...)
	}
	for range workers {
		wg.Go(func() {
			for p := range queue {
				err := explore(p, o, say)
				mu.Lock()
				failed = append(failed, err)
				mu.Unlock()
			}
		})
	}
	for _, p := range plans {
		queue <- p
	}
	close(queue)
	wg.Wait()
	return errors.Join(failed...)
}

func explore(p sim.Plan, o sim.Options, say func(string, ...any)) error {
	began, said := time.Now(), time.Now()
	o.Progress = func(r sim.Report) {
		if time.Since(said) > 5*time.Second {
			said = time.Now()
			say("%-22s %9d states %10d runs …", p.Name, r.States, r.Runs)
		}
	}
	r, err := sim.Explore(p, o)
	if err != nil {
		return fmt.Errorf("explore %s: %w", p.Name, err)
	}
	say("%-22s %9d states %10d runs in %v: %v", p.Name, r.States, r.Runs, time.Since(began).Round(time.Millisecond), &r.Marks)
	if r.Violation != nil {
		return errors.New(r.Violation.String())
	}
	if missing := r.Marks.Missing(p.Require); missing != nil {
		return fmt.Errorf("%s proves nothing about %v: none of its runs came to it", p.Name, missing)
	}
	return nil
}
