package ops

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/terminal"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/store"
)

// statsView is the output of `stats --json`.
type statsView struct {
	Counts []countView `json:"counts"`
}

// countView is the JSON view of the counts of one operation in one state.
type countView struct {
	Operation string  `json:"operation"`
	State     string  `json:"state"`
	Records   int64   `json:"records"`
	Overdue   int64   `json:"overdue"`
	Purgeable int64   `json:"purgeable"`
	Oldest    seconds `json:"oldest_seconds"`
}

func newStatsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "stats",
		Short: "Count records by operation and state",
		Long: `stats counts the records of each operation and state. OVERDUE are Pending records that
are due and InProgress records whose lease has expired. PURGEABLE are records past
their retention. OLDEST is the time since the earliest change to the state. The command
reads all records, in one snapshot.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			return withDB(c, func(ctx context.Context, db *database) error {
				counts, err := countsOf(ctx, db)
				if err != nil {
					return err
				}
				if terminal.WantsJSON(c) {
					return terminal.WriteJSON(c, statsOf(counts))
				}
				writeStats(c, counts)
				return nil
			})
		},
	}
	addDB(c)
	return c
}

func statsOf(counts []store.Count) statsView {
	v := statsView{Counts: []countView{}}
	for _, n := range counts {
		v.Counts = append(v.Counts, countView{
			Operation: n.Operation, State: n.State.String(), Records: n.Records, Overdue: n.Overdue,
			Purgeable: n.Purgeable, Oldest: seconds(n.Oldest),
		})
	}
	return v
}

// writeStats prints counts for people, and their sum.
func writeStats(c *cobra.Command, counts []store.Count) {
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "OPERATION\tSTATE\tRECORDS\tOVERDUE\tPURGEABLE\tOLDEST")
	var sum store.Count
	for _, n := range counts {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\n",
			recordview.Safe(n.Operation), n.State, n.Records, n.Overdue, n.Purgeable, recordview.Ago(n.Oldest))
		sum.Records += n.Records
		sum.Overdue += n.Overdue
		sum.Purgeable += n.Purgeable
	}
	fmt.Fprintf(w, "all\t\t%d\t%d\t%d\t%s\n", sum.Records, sum.Overdue, sum.Purgeable, recordview.Ago(oldest(counts)))
	_ = w.Flush() // the output is closed: there is no reader
}

func oldest(counts []store.Count) time.Duration {
	var d time.Duration
	for _, n := range counts {
		d = max(d, n.Oldest)
	}
	return d
}
