package ops

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/cmd/semel/internal/terminal"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/store"
)

const (
	// purgeStep is the number of records per call of Purge.
	purgeStep = 1000
	// purgeReportEvery is the number of records between two progress lines.
	purgeReportEvery = 50 * purgeStep
)

// purgedView is the output of `purge --json`.
type purgedView struct {
	DryRun  bool         `json:"dry_run"`
	Records int64        `json:"records"` // that were removed, or would be
	Counts  []purgeCount `json:"counts,omitempty"`
}

// purgeCount is the number of expired records of an operation in one state.
type purgeCount struct {
	Operation string `json:"operation"`
	State     string `json:"state"`
	Records   int64  `json:"records"`
}

func newPurgeCommand() *cobra.Command {
	var dry bool
	var limit int
	c := &cobra.Command{
		Use:   "purge",
		Short: "Remove records that are past their retention",
		Long: `purge removes expired Succeeded, Failed and Pending records, in small transactions,
starting with those that expired first. InProgress and InDoubt records are never
removed. The command can be interrupted and started again.

With --dry-run nothing is removed: the expired records are counted, which reads all
records.

Other records cannot be chosen: a record that is removed before the end of its
retention would let its key run again.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return exit.Usagef("--limit %d is less than zero", limit)
			}
			return withDB(c, func(ctx context.Context, db *database) error {
				if dry {
					return dryPurge(ctx, c, db, int64(limit))
				}
				return purge(ctx, c, db, limit)
			})
		},
	}
	addDB(c)
	c.Flags().BoolVar(&dry, "dry-run", false, "only count the records that would be removed")
	c.Flags().IntVar(&limit, "limit", 0, "maximum number of records to remove; 0 means all")
	return c
}

// dryPurge prints how many records would be removed.
func dryPurge(ctx context.Context, c *cobra.Command, db *database, limit int64) error {
	counts, err := countsOf(ctx, db)
	if err != nil {
		return err
	}
	v := purgedView{DryRun: true}
	for _, n := range counts {
		if n.Purgeable > 0 {
			v.Counts = append(v.Counts, purgeCount{n.Operation, n.State.String(), n.Purgeable})
			v.Records += n.Purgeable
		}
	}
	if limit > 0 {
		v.Records = min(v.Records, limit)
	}
	if terminal.WantsJSON(c) {
		return terminal.WriteJSON(c, v)
	}
	for _, n := range v.Counts {
		fmt.Fprintf(c.OutOrStdout(), "%8d  %-9s  %s\n", n.Records, n.State, recordview.Safe(n.Operation))
	}
	fmt.Fprintf(c.OutOrStdout(), "records that would be removed: %d\n", v.Records)
	return nil
}

// purge removes records and prints how many, also if it ends early.
func purge(ctx context.Context, c *cobra.Command, db *database, limit int) error {
	removed, err := remove(ctx, db.records, limit, c.ErrOrStderr())
	if err != nil {
		return fmt.Errorf("after %d records: %w", removed, err)
	}
	if terminal.WantsJSON(c) {
		return terminal.WriteJSON(c, purgedView{Records: int64(removed)})
	}
	fmt.Fprintf(c.OutOrStdout(), "records removed: %d\n", removed)
	return nil
}

// remove calls Purge until no expired record is left or limit records are
// removed. It reports long work to progress.
func remove(ctx context.Context, s store.Store, limit int, progress io.Writer) (removed int, err error) {
	reported := 0
	for {
		step := purgeStep
		if limit > 0 {
			step = min(step, limit-removed)
		}
		if step == 0 {
			return removed, nil
		}
		n, err := s.Purge(ctx, step)
		removed += n
		if err != nil || n == 0 {
			return removed, err
		}
		if removed-reported >= purgeReportEvery {
			reported = removed
			fmt.Fprintf(progress, "semel: records removed: %d, going on\n", removed)
		}
	}
}
