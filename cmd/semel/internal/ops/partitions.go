package ops

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
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

// withPartitions runs fn with the partitions of the database that c names.
func withPartitions(c *cobra.Command, o postgres.PartitionOptions, fn func(ctx context.Context, p *postgres.Partitions) error) error {
	return withDB(c, func(ctx context.Context, db *database) error {
		p, err := partitionsOf(db, o)
		if err != nil {
			return err
		}
		return fn(ctx, p)
	})
}

// partitionsOf returns the partitions of db.
func partitionsOf(db *database, o postgres.PartitionOptions) (*postgres.Partitions, error) {
	if db.partitions == nil {
		return nil, exit.Usagef("--%s: partitions are for PostgreSQL; semel purge works on all databases", flagDB)
	}
	p, err := db.partitions(o)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	return p, nil
}

func errNotDivided() error {
	return &exit.Error{Code: exit.Failed, Err: errors.New("the table of records is not divided into partitions; semel partitions divide does it")}
}

// partitionsView is the output of `partitions list --json`.
type partitionsView struct {
	Partitions []partitionView `json:"partitions"`
}

// partitionView is the JSON view of a partition.
type partitionView struct {
	Partition string     `json:"partition"`      // the name of its table
	From      *time.Time `json:"from,omitempty"` // nil for the first partition, which holds all before To and all keys without a time
	To        time.Time  `json:"to"`
	Sealed    bool       `json:"sealed"`   // its drop is in progress, or was interrupted
	Detached  bool       `json:"detached"` // as Sealed, and no longer part of the table
}

func partitionOf(p *postgres.Partition) partitionView {
	v := partitionView{Partition: p.Name, To: p.To, Sealed: p.Sealed, Detached: p.Detached}
	if !p.First() {
		v.From = &p.From
	}
	return v
}

// cells returns v as cells of a table.
func (v *partitionView) cells() string {
	from := "-"
	if v.From != nil {
		from = v.From.Format(time.RFC3339)
	}
	return fmt.Sprintf("%s\t%s\t%s", v.Partition, from, v.To.Format(time.RFC3339))
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
