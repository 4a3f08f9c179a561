//go:build unix

package command

import (
	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/fixture"
)

// unixCommands are those that need what only Unix has: the fixture hands its
// listener to a child, which it lets be killed.
func unixCommands() []*cobra.Command { return []*cobra.Command{fixture.NewCommand()} }
