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
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store/postgres"
)

// droppedView is the output of `partitions drop --json`.
type droppedView struct {
	DryRun     bool      `json:"dry_run"`
	Partitions []oldView `json:"partitions"` // all old partitions
}

// oldView is an old partition and what happens to it.
type oldView struct {
	partitionView

	Records int64 `json:"records"` // before the drop
	Dropped bool  `json:"dropped"`
	// The number of records that keep the partition from being dropped:
	// unfinished records, and records that must be kept for longer.
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
		Short: "Drop old partitions with their records",
		Long: `drop drops the partitions that ended more than --keep ago, by the database's clock.
Without --yes nothing is dropped: the partitions that would be dropped are listed
with their records, which reads all of these records.

A partition stays if it holds a record that semel purge would not remove either: one
that is Pending, InProgress or InDoubt, or that must be kept for longer. After the
drop, keys with a time in that partition are refused and not run again.`,
		Example:           "  semel partitions drop --keep 168h --yes",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case !c.Flags().Changed("keep"):
				return exit.Usagef("--keep is required: the longest retention of an operation whose keys contain a time")
			case keep <= 0:
				return exit.Usagef("--keep must be more than zero")
			}
			return withPartitions(c, postgres.PartitionOptions{Keep: keep}, func(ctx context.Context, p *postgres.Partitions) error {
				return drop(ctx, c, p, yes)
			})
		},
	}
	addDB(c)
	durationVar(c.Flags(), &keep, "keep", 0, "how long a partition is kept after its end: the longest retention of an operation whose keys contain a time")
	c.Flags().BoolVar(&yes, "yes", false, "drop the partitions, not only list them")
	return c
}

// drop prints the old partitions and, with yes, drops those that may be
// dropped. Partitions that must stay are an error only with yes.
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

// drop drops the partitions that may be dropped, and updates v.
func (v *droppedView) drop(ctx context.Context, p *postgres.Partitions) error {
	dropped, err := p.Drop(ctx)
	for i := range dropped {
		at := slices.IndexFunc(v.Partitions, func(o oldView) bool { return o.Partition == dropped[i].Name })
		if at < 0 { // it has become old after the list was made
			at = len(v.Partitions)
			v.Partitions = append(v.Partitions, oldView{partitionView: partitionOf(&dropped[i])})
		}
		v.Partitions[at].Dropped = true
	}
	if _, held := errtype.Find[*postgres.HeldError](err); held {
		return &exit.Error{Code: exit.Failed, Err: singleLineError{err}}
	}
	return err
}

// fateHeld is the fate of a partition that must stay.
const fateHeld = "held"

// fate returns, as a word for people, what happens to v.
func (v *oldView) fate(dry bool) string {
	switch {
	case v.Dropped:
		return "dropped"
	case dry && v.Pending+v.InProgress+v.InDoubt+v.Kept == 0:
		return "would be dropped"
	default:
		return fateHeld
	}
}

// write prints v for people.
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
	_ = w.Flush() // the output is closed: there is no reader
	verb := "dropped"
	if v.DryRun {
		verb = "that would be dropped (--yes drops them)"
	}
	fmt.Fprintf(c.OutOrStdout(), "partitions %s: %d, with %d records\n", verb, went, records)
}
