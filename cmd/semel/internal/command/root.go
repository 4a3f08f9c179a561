// Package command assembles the program's commands and runs one of them.
package command

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/cmd/semel/internal/ops"
	"github.com/semelgo/semel/cmd/semel/internal/terminal"
	"github.com/semelgo/semel/internal/errtype"
)

const about = `semel tests how HTTP servers handle idempotency keys, and manages the
records of operations.

Exit codes: 0 done, or the check passed; 1 not done, or the check failed; 2 the command
line or a file that it names is invalid; 3 the server or the database cannot be reached;
4 there is no such record; 5 the state of the record does not allow it; 6 passed with
warnings.`

// New returns the root command with all commands. Each command is registered
// here, with a New…Command function of its own package.
func New() *cobra.Command {
	root := &cobra.Command{
		Use:           "semel",
		Short:         "Test idempotency keys and manage records",
		Long:          about,
		Args:          cobra.NoArgs,
		SilenceErrors: true, // Main prints them
		SilenceUsage:  true,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.Version = buildVersion().String()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(unknownCommand)
	terminal.AddFlags(root)
	root.AddCommand(
		NewConformCommand(),
		NewVersionCommand(),
	)
	root.AddCommand(ops.NewCommands()...)
	root.AddCommand(unixCommands()...)
	return root
}

// unknownCommand reports a mistyped command. Otherwise cobra would report the
// first flag after it, which the root does not know either.
func unknownCommand(c *cobra.Command, err error) error {
	if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
		return fmt.Errorf("unknown command %q for %q", args[0], c.CommandPath())
	}
	return err
}

// Main runs the command in args and returns the exit code. It prints an error
// on stderr. The command stops when ctx ends.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := New()                             //nolint:contextcheck // cobra passes the context to the commands
	root.SetArgs(append([]string{}, args...)) // cobra treats nil as os.Args
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	began := false
	watchStart(root, &began)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exit.OK
	}
	code := exit.CodeOf(err)
	if !began {
		code = exit.Usage
	}
	reportError(stderr, ran, err, code)
	return code
}

// watchStart sets began when a command begins to run. An error before that is
// an error of the command line.
func watchStart(c *cobra.Command, began *bool) {
	if run := c.RunE; run != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			*began = true
			return run(c, args)
		}
	}
	for _, sub := range c.Commands() {
		watchStart(sub, began)
	}
}

func reportError(stderr io.Writer, ran *cobra.Command, err error, code int) {
	if own, ok := errtype.Find[*exit.Error](err); ok && own.Err == nil {
		return
	}
	fmt.Fprintf(stderr, "semel: %v\n", err)
	if code == exit.Usage {
		fmt.Fprintf(stderr, "See %s --help.\n", ran.CommandPath())
	}
}
