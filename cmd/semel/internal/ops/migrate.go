package ops

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/terminal"
)

// migrated is the output of `migrate --json`.
type migrated struct {
	Database string `json:"database"` // without a password
	Migrated bool   `json:"migrated"`
}

func newMigrateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Create or update the tables of a database",
		Long: `migrate creates or updates the tables of records. It is the only command that creates
a database file, and, apart from semel partitions, the only one that changes a schema.
Programs may use the database meanwhile, and several migrations may run at once.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			at, err := dbOf(c)
			if err != nil {
				return err
			}
			db, err := open(c.Context(), at, mayBeNew)
			if err != nil {
				return err
			}
			defer db.close()
			if err := db.migrate(c.Context()); err != nil {
				return withCode(err)
			}
			if terminal.WantsJSON(c) {
				return terminal.WriteJSON(c, migrated{Database: db.name, Migrated: true})
			}
			fmt.Fprintf(c.OutOrStdout(), "%s is up to date\n", db.name)
			return nil
		},
	}
	addDB(c)
	return c
}
