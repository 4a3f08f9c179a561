//go:build unix

package command

import (
	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/fixture"
)

// unixCommands are the commands that need Unix: the fixture passes its listener
// to a child process, and lets clients kill the child.
func unixCommands() []*cobra.Command { return []*cobra.Command{fixture.NewCommand()} }
