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

// aheadView is what `partitions divide --json` and `partitions ahead --json` write.
type aheadView struct {
	Made int       `json:"made"` // partitions
	To   time.Time `json:"to"`   // the first time that there is none for
}

// aheadFlags is what the command line says about partitions to come.
type aheadFlags struct {
	width time.Duration
	count int
}

func (a *aheadFlags) addFlags(c *cobra.Command, width string) {
	addDB(c)
	durationVar(c.Flags(), &a.width, "width", 0, "how much time a partition holds: whole seconds, a minute at least; "+width)
	c.Flags().IntVar(&a.count, "ahead", postgres.DefaultAhead, "how many partitions there are to be for the time to come")
}

func (a *aheadFlags) check(c *cobra.Command) error {
	switch {
	case c.Flags().Changed("width") && (a.width < time.Minute || a.width%time.Second != 0):
		return exit.Usagef("--width %v is not whole seconds and a minute at least", a.width)
	case a.count < 1:
		return exit.Usagef("--ahead %d is less than one", a.count)
	}
	return nil
}

func (a *aheadFlags) options() postgres.PartitionOptions {
	return postgres.PartitionOptions{Width: a.width, Ahead: a.count}
}

func newPartitionsDivideCommand() *cobra.Command {
	var a aheadFlags
	c := &cobra.Command{
		Use:   "divide",
		Short: "Divide the table of records into partitions",
		Long: `divide turns the table of records into a partitioned one, whose first partition is
what was there, and makes the partitions that follow it. The records are read once.
Programs need not be stopped: the table is locked for a moment. Where it has been
done, only the partitions that are missing are made.

It is not undone by any command.`,
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
	a.addFlags(c, "as much as the last one, or 24h, if it is not given")
	return c
}

func newPartitionsAheadCommand() *cobra.Command {
	var a aheadFlags
	c := &cobra.Command{
		Use:   "ahead",
		Short: "Make partitions for the time to come",
		Long: `ahead makes the partitions that are missing for the time to come. A key of a time
for which there is no partition is refused. What is written meanwhile does not wait.`,
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
	a.addFlags(c, "as much as the last one if it is not given")
	return c
}

// partitions are those of db, to come as wide as the last one is unless the command
// line says otherwise, and those that there are. They are there too when the error
// is postgres.ErrNotDivided.
func (a *aheadFlags) partitions(ctx context.Context, db *database) (p *postgres.Partitions, all []postgres.Partition, err error) {
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

// writeAhead writes how many partitions were made, and for which time there are
// some now.
func writeAhead(c *cobra.Command, all []postgres.Partition, made int, err error) error {
	if err != nil {
		return err
	}
	v := aheadView{Made: made}
	for _, p := range all {
		if p.To.After(v.To) {
			v.To = p.To
		}
	}
	if terminal.WantsJSON(c) {
		return terminal.WriteJSON(c, v)
	}
	fmt.Fprintf(c.OutOrStdout(), "partitions made: %d; there are some until %s\n", v.Made, v.To.Format(time.RFC3339))
	return nil
}
