//go:build !unix

package command

import "github.com/spf13/cobra"

// unixCommands are those that need what only Unix has.
func unixCommands() []*cobra.Command { return nil }
