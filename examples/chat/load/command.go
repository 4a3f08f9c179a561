package load

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// Exit codes of the command.
const (
	exitOK     = 0
	exitFailed = 1 // the servers did not answer, or a promise was found broken
	exitUsage  = 2
)

const usage = `usage: chat load [flags]

Sends messages with many clients that drop their connections, prints the time from a message's
submission to its pushes, and verifies that each message is stored once and that each client
has seen all messages of its groups, each once. It signs up accounts and creates groups, which
stay. The servers must be started with -sign-ups 0 -log-ins 0, and -argon2 m=64,t=1,p=1 makes
the start of a large run faster. Do not point it at servers that people use.

`

// Main runs the command load until ctx ends, and returns its exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o := Options{Progress: stderr}
	flags := flag.NewFlagSet("chat load", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Func("servers", "`URLs` of the servers with commas, such as http://127.0.0.1:8080; all have one database", func(value string) error {
		for url := range strings.SplitSeq(value, ",") {
			o.Servers = append(o.Servers, strings.TrimRight(strings.TrimSpace(url), "/"))
		}
		return nil
	})
	flags.IntVar(&o.Clients, "clients", 100, "connections")
	flags.IntVar(&o.Accounts, "accounts", 0, "accounts that the clients share; 0: one for four clients, at most 100")
	flags.IntVar(&o.Groups, "groups", 0, "groups; each account is a member of two; 0: one for 10 accounts")
	flags.IntVar(&o.Messages, "messages", 1000, "messages to send in all")
	flags.Float64Var(&o.Rate, "rate", 100, "messages per second")
	flags.DurationVar(&o.Drop, "drop", 0, "mean `time` after which a client drops its connection and reconnects; 0: 10s; negative: never")
	flags.DurationVar(&o.Patience, "patience", 0, "how long the clients may need after the last message; 0: 1m")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(stdout, usage)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return exitOK
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err == nil {
		o, err = o.withDefaults()
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "chat load:", err)
		return exitUsage
	}
	report, err := Run(ctx, o)
	if report.Messages > 0 {
		report.Write(stdout)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return exitFailed
	}
	return exitOK
}
