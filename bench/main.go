// Command bench measures Semel against its goals, side by side with hand-written
// code and with other libraries, and writes the results.
//
//	go run . [-quick] [-row regexp] [-dir results] [-profile directory]
//
// It needs Linux, an installed PostgreSQL, and fifty minutes. With -quick it takes
// less than 3 minutes and measures less. Both write latest.json, latest.md and
// charts. With -row it measures only the experiments with a matching row, and
// writes nothing unless -dir is given.
//
// With -profile it writes cpu.prof, allocs.prof, mutex.prof and block.prof. Samples
// of cpu.prof have the side as a label: go tool pprof -tagfocus side=Do cpu.prof.
//
// The exit code is 1 if a goal was missed or not measured, without -quick; and 2 if
// the command could not run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/semelgo/semel/bench/internal/program"
	"github.com/semelgo/semel/bench/internal/rows"
)

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	missed, err := program.Run(ctx, o, rows.All(), os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	case missed > 0 && !o.Quick:
		fmt.Fprintln(os.Stderr, "bench: missed or not measured:", missed)
		os.Exit(1)
	}
}

func parse(args []string, stderr io.Writer) (program.Options, error) {
	var o program.Options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.Quick, "quick", false, "take less than 3 minutes, and tell less")
	flags.StringVar(&o.Dir, "dir", "", "where the results are written; results, and with -row nowhere")
	flags.StringVar(&o.Profile, "profile", "", "where profiles of this process are written; they slow it down")
	flags.Func("row", "measure only what gives rows that match", func(text string) (err error) {
		o.Row, err = regexp.Compile(text)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		fmt.Fprintln(stderr, "bench: unexpected:", flags.Args())
		return o, errors.New("unexpected arguments")
	}
	if o.Dir == "" && o.Row == nil {
		o.Dir = "results"
	}
	return o, nil
}
