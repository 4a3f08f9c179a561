// Package ops has the commands for operators: they show the records of a
// database, resolve those in doubt, and remove old ones.
package ops

import (
	"github.com/spf13/cobra"
)

// NewCommands returns the commands of this package, for the root command.
func NewCommands() []*cobra.Command {
	return []*cobra.Command{
		newMigrateCommand(),
		newListCommand(),
		newShowCommand(),
		newResolveCommand(),
		newRedriveCommand(),
		newCancelCommand(),
		newRescheduleCommand(),
		newPurgeCommand(),
		newSweepCommand(),
		newPartitionsCommand(),
		newStatsCommand(),
		newOutboxCommand(),
		newJournalCommand(),
		newConsoleCommand(),
	}
}
