package ops

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/terminal"
	"github.com/semelgo/semel/store/postgres"
)

func newPartitionsCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "partitions",
		Short: "Manage the partitions of the table of records (PostgreSQL)",
		Long: `partitions are the parts of the table of records. Each holds the keys of one span of
time, so that old records are removed by dropping a table. Programs manage partitions
with postgres.Partitions; these commands do the same.

They need the role that owns the table, and session connections: PgBouncer in
transaction mode does not work.`,
	}, newPartitionsListCommand(), newPartitionsDivideCommand(), newPartitionsAheadCommand(), newPartitionsDropCommand())
}

func newPartitionsListCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the partitions",
		Long: `list lists the partitions by time, in UTC. FROM is the first time that a partition
holds, TO the first time after it. The first partition holds all keys without a time
and all records from before the division; it is never dropped.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			return withPartitions(c, postgres.PartitionOptions{}, func(ctx context.Context, p *postgres.Partitions) error {
				all, err := p.List(ctx)
				if err != nil {
					return err
				}
				return writePartitions(c, all)
			})
		},
	}
	addDB(c)
	return c
}

func writePartitions(c *cobra.Command, all []postgres.Partition) error {
	v := partitionsView{Partitions: []partitionView{}}
	for i := range all {
		v.Partitions = append(v.Partitions, partitionOf(&all[i]))
	}
	if terminal.WantsJSON(c) {
		return terminal.WriteJSON(c, v)
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PARTITION\tFROM\tTO\tDROP")
	for i := range v.Partitions {
		dropping := "-"
		if p := &v.Partitions[i]; p.Sealed || p.Detached {
			dropping = "under way"
		}
		fmt.Fprintf(w, "%s\t%s\n", v.Partitions[i].cells(), dropping)
	}
	_ = w.Flush() // the output is closed: there is no reader
	return nil
}
