//go:build !unix

package command

import "github.com/spf13/cobra"

// unixCommands are the commands that need Unix.
func unixCommands() []*cobra.Command { return nil }
