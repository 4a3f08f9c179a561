package ops

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/cmd/semel/internal/terminal"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/store"
)

func newOutboxCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "outbox",
		Short: "Show the events that wait for a relay, and redrive parked aggregates",
		Long: `outbox is for the events that programs append with package outbox. An aggregate is parked
when one of its events cannot be published: its events are kept and not published.`,
	}, newOutboxStatsCommand(), newOutboxParkedCommand(), newOutboxRedriveCommand(), newOutboxNotesCommand())
}

// outboxStatsView is the output of `outbox stats --json`.
type outboxStatsView struct {
	Events           int64   `json:"events"`
	Oldest           seconds `json:"oldest_seconds"`
	ParkedAggregates int64   `json:"parked_aggregates"`
	ParkedEvents     int64   `json:"parked_events"`
}

func newOutboxStatsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "stats",
		Short: "Count the events that wait",
		Long: `stats counts the events that are to be published, which is the lag, and shows the age of
the oldest of them. Events of parked aggregates are counted apart. The command reads all
events.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			return withDB(c, func(ctx context.Context, db *database) error {
				n, err := db.outbox.Counts(ctx)
				if err != nil {
					return err
				}
				if terminal.WantsJSON(c) {
					return terminal.WriteJSON(c, outboxStatsView{n.Events, seconds(n.Oldest), n.Aggregates, n.Parked})
				}
				w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "EVENTS\tOLDEST\tPARKED AGGREGATES\tPARKED EVENTS")
				fmt.Fprintf(w, "%d\t%s\t%d\t%d\n", n.Events, recordview.Ago(n.Oldest), n.Aggregates, n.Parked)
				_ = w.Flush() // the output is closed: there is no reader
				return nil
			})
		},
	}
	addDB(c)
	return c
}

// outboxParkedView is the output of `outbox parked --json`.
type outboxParkedView struct {
	Aggregates []parkedView `json:"aggregates"`
}

// parkedView is the JSON view of a parked aggregate.
type parkedView struct {
	Topic     string  `json:"topic"`
	Aggregate string  `json:"aggregate"`
	EventID   string  `json:"event_id"`
	EventType string  `json:"event_type"`
	Failures  int     `json:"failures"`
	Reason    string  `json:"reason,omitempty"`
	Age       seconds `json:"parked_seconds"`
	Events    int64   `json:"kept_events"`
	Redriven  bool    `json:"redriven"` // a relay is about to end the parking
}

func newOutboxParkedCommand() *cobra.Command {
	var limit int
	var reveal bool
	c := &cobra.Command{
		Use:   "parked",
		Short: "List the parked aggregates",
		Long: `parked lists parked aggregates, first parked first, with the event that could not be
published and the number of kept events. The error of the publisher may contain anything,
so it is shown with --reveal only.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 1 {
				return exit.Usagef("--limit %d is less than one", limit)
			}
			return withDB(c, func(ctx context.Context, db *database) error {
				all, err := db.outbox.ParkedAggregates(ctx, limit)
				if err != nil {
					return err
				}
				return writeParked(c, all, reveal)
			})
		},
	}
	addDB(c)
	c.Flags().IntVar(&limit, "limit", store.DefaultLimit, "the largest number of aggregates")
	addReveal(c, &reveal, "show the errors in full")
	return c
}

func writeParked(c *cobra.Command, all []store.ParkedAggregate, reveal bool) error {
	v := outboxParkedView{Aggregates: []parkedView{}}
	for _, p := range all {
		if !reveal {
			p.Reason = ""
		}
		v.Aggregates = append(v.Aggregates, parkedView{
			p.Topic, p.Aggregate, p.ID, p.Type, p.Failures, p.Reason, seconds(p.Age), p.Events, p.Parking != store.Parked,
		})
	}
	if terminal.WantsJSON(c) {
		return terminal.WriteJSON(c, v)
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TOPIC\tAGGREGATE\tEVENT\tTYPE\tFAILURES\tPARKED\tEVENTS\tREASON")
	for i := range v.Aggregates {
		p := &v.Aggregates[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%d\t%s\n",
			recordview.Safe(p.Topic), recordview.Safe(p.Aggregate), p.EventID, recordview.Safe(p.EventType), p.Failures, recordview.Ago(all[i].Age), p.Events, recordview.Safe(p.Reason))
	}
	_ = w.Flush() // the output is closed: there is no reader
	return nil
}
