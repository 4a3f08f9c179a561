package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/cmd/semel/internal/terminal"
	"github.com/semelgo/semel/store/postgres"
)

// droppedView is what `partitions drop --json` writes.
type droppedView struct {
	DryRun     bool      `json:"dry_run"`
	Partitions []oldView `json:"partitions"` // all that are old
}

// oldView is an old partition, and what becomes of it.
type oldView struct {
	partitionView

	Records int64 `json:"records"` // before the drop
	Dropped bool  `json:"dropped"`
	// How many of the records hold the partition: unfinished ones, and such as are
	// to be kept for longer.
	Pending    int64 `json:"pending"`
	InProgress int64 `json:"in_progress"`
	InDoubt    int64 `json:"in_doubt"`
	Kept       int64 `json:"kept"`
}

func newPartitionsDropCommand() *cobra.Command {
	var keep time.Duration
	var yes bool
	c := &cobra.Command{
		Use:   "drop --keep DURATION [--yes]",
		Short: "Drop old partitions, with all that they have",
		Long: `drop drops the partitions that ended more than --keep ago, by the database's clock.
Without --yes nothing is dropped: those that would go are listed, since when their
records are and how many, which reads all of these records.

A partition stays that holds a record which semel purge would not remove either:
one that waits, runs or is in doubt, or is to be kept for longer. A key of the time
of a partition that went is refused from then on, and not run again.`,
		Example:           "  semel partitions drop --keep 168h --yes",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case !c.Flags().Changed("keep"):
				return exit.Usagef("--keep is required: as long as the longest retention of an operation whose keys carry a time")
			case keep <= 0:
				return exit.Usagef("--keep must be more than zero")
			}
			return withPartitions(c, postgres.PartitionOptions{Keep: keep}, func(ctx context.Context, p *postgres.Partitions) error {
				return drop(ctx, c, p, yes)
			})
		},
	}
	addDB(c)
	durationVar(c.Flags(), &keep, "keep", 0, "how long after its end a partition stays: the longest retention of an operation whose keys carry a time")
	c.Flags().BoolVar(&yes, "yes", false, "drop them, and do not only say what would go")
	return c
}

// drop writes which partitions are old and, if it is to, drops those that may go.
// That some are held is an error of a drop only.
func drop(ctx context.Context, c *cobra.Command, p *postgres.Partitions, yes bool) error {
	old, err := p.Old(ctx)
	if err != nil {
		return err
	}
	v := droppedView{DryRun: !yes, Partitions: []oldView{}}
	for i := range old {
		v.Partitions = append(v.Partitions, oldViewOf(&old[i]))
	}
	var failed error
	if yes {
		failed = v.drop(ctx, p)
	}
	if terminal.WantsJSON(c) {
		err = terminal.WriteJSON(c, v)
	} else {
		v.write(c)
	}
	return errors.Join(failed, err)
}

func oldViewOf(o *postgres.OldPartition) oldView {
	v := oldView{partitionView: partitionOf(&o.Partition), Records: o.Records}
	if h := o.Held; h != nil {
		v.Pending, v.InProgress, v.InDoubt, v.Kept = h.Pending, h.InProgress, h.InDoubt, h.Kept
	}
	return v
}

// drop drops what may go, and says in v what went.
func (v *droppedView) drop(ctx context.Context, p *postgres.Partitions) error {
	dropped, err := p.Drop(ctx)
	for i := range dropped {
		at := slices.IndexFunc(v.Partitions, func(o oldView) bool { return o.Partition == dropped[i].Name })
		if at < 0 { // it has become old since it was looked at
			at = len(v.Partitions)
			v.Partitions = append(v.Partitions, oldView{partitionView: partitionOf(&dropped[i])})
		}
		v.Partitions[at].Dropped = true
	}
	if _, held := errors.AsType[*postgres.HeldError](err); held {
		return &exit.Error{Code: exit.Failed, Err: oneLineError{err}}
	}
	return err
}

// fateHeld is that of a partition which stays.
const fateHeld = "held"

// fate is what becomes of v, for people.
func (v *oldView) fate(dry bool) string {
	switch {
	case v.Dropped:
		return "dropped"
	case dry && v.Pending+v.InProgress+v.InDoubt+v.Kept == 0:
		return "would go"
	default:
		return fateHeld
	}
}

// write writes v for people.
func (v *droppedView) write(c *cobra.Command) {
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	if len(v.Partitions) > 0 {
		fmt.Fprintln(w, "PARTITION\tFROM\tTO\tRECORDS\tPENDING\tINPROGRESS\tINDOUBT\tKEPT\tDROP")
	}
	went, records := 0, int64(0)
	for i := range v.Partitions {
		p := &v.Partitions[i]
		fate := p.fate(v.DryRun)
		if fate != fateHeld {
			went++
			records += p.Records
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%s\n", p.cells(), p.Records, p.Pending, p.InProgress, p.InDoubt, p.Kept, fate)
	}
	_ = w.Flush() // nobody is left to be told
	verb := "dropped"
	if v.DryRun {
		verb = "that would go (--yes drops them)"
	}
	fmt.Fprintf(c.OutOrStdout(), "partitions %s: %d, with %d records\n", verb, went, records)
}
