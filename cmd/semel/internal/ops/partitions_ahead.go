package ops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/cmd/semel/internal/terminal"
	"github.com/semelgo/semel/store/postgres"
)

// createdPartitionsView is the output of `partitions divide --json` and `partitions ahead
// --json`.
type createdPartitionsView struct {
	Made int       `json:"made"` // number of new partitions
	To   time.Time `json:"to"`   // the end of the last partition
}

// createPartitionsFlags are the flags about future partitions.
type createPartitionsFlags struct {
	width time.Duration
	count int
}

func (a *createPartitionsFlags) addFlags(c *cobra.Command, width string) {
	addDB(c)
	durationVar(c.Flags(), &a.width, "width", 0, "the time span of a partition: whole seconds, at least a minute; "+width)
	c.Flags().IntVar(&a.count, "ahead", postgres.DefaultAhead, "number of partitions for future times")
}

func (a *createPartitionsFlags) check(c *cobra.Command) error {
	switch {
	case c.Flags().Changed("width") && (a.width < time.Minute || a.width%time.Second != 0):
		return exit.Usagef("--width %v must be whole seconds, at least a minute", a.width)
	case a.count < 1:
		return exit.Usagef("--ahead %d is less than one", a.count)
	}
	return nil
}

func (a *createPartitionsFlags) options() postgres.PartitionOptions {
	return postgres.PartitionOptions{Width: a.width, Ahead: a.count}
}

func newPartitionsDivideCommand() *cobra.Command {
	var a createPartitionsFlags
	c := &cobra.Command{
		Use:   "divide",
		Short: "Divide the table of records into partitions",
		Long: `divide turns the table of records into a partitioned table: the existing records become
its first partition, and the partitions after it are created. The records are read
once. Programs may keep running: the table is locked only for a moment. If the table
is divided already, only missing partitions are created.

No command reverses this.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.check(c); err != nil {
				return err
			}
			return withDB(c, func(ctx context.Context, db *database) error {
				p, before, err := a.partitions(ctx, db)
				if err != nil && !errors.Is(err, postgres.ErrNotDivided) {
					return err
				}
				if err := p.Divide(ctx); err != nil {
					return err
				}
				all, err := p.List(ctx)
				return writeAhead(c, all, len(all)-len(before), err)
			})
		},
	}
	a.addFlags(c, "default: as the last partition, or 24h")
	return c
}

func newPartitionsAheadCommand() *cobra.Command {
	var a createPartitionsFlags
	c := &cobra.Command{
		Use:   "ahead",
		Short: "Create partitions for future times",
		Long: `ahead creates the missing partitions for future times. A key whose time has no
partition is refused. Other writes are not blocked meanwhile.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.check(c); err != nil {
				return err
			}
			return withDB(c, func(ctx context.Context, db *database) error {
				p, _, err := a.partitions(ctx, db)
				if err != nil {
					return err
				}
				made, err := p.Ensure(ctx)
				if err != nil {
					return err
				}
				all, err := p.List(ctx)
				return writeAhead(c, all, made, err)
			})
		},
	}
	a.addFlags(c, "default: as the last partition")
	return c
}

// partitions returns the partitions of db, configured by the flags, and the
// list of existing partitions. Without --width, new partitions are as wide as
// the last one. The first result is also set if the error is
// postgres.ErrNotDivided.
func (a *createPartitionsFlags) partitions(ctx context.Context, db *database) (p *postgres.Partitions, all []postgres.Partition, err error) {
	o := a.options()
	if p, err = partitionsOf(db, o); err != nil {
		return p, nil, err
	}
	if all, err = p.List(ctx); err != nil || o.Width > 0 || len(all) == 0 {
		return p, all, err
	}
	if last := all[len(all)-1]; !last.First() && !last.Detached {
		o.Width = last.To.Sub(last.From)
	}
	p, err = partitionsOf(db, o)
	return p, all, err
}

// writeAhead prints how many partitions were created, and the end of the last
// one.
func writeAhead(c *cobra.Command, all []postgres.Partition, made int, err error) error {
	if err != nil {
		return err
	}
	v := createdPartitionsView{Made: made}
	for _, p := range all {
		if p.To.After(v.To) {
			v.To = p.To
		}
	}
	if terminal.WantsJSON(c) {
		return terminal.WriteJSON(c, v)
	}
	fmt.Fprintf(c.OutOrStdout(), "partitions created: %d; the last one ends at %s\n", v.Made, v.To.Format(time.RFC3339))
	return nil
}
