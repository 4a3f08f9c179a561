package ops

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/cmd/semel/internal/terminal"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/store"
)

// redriveView is the output of `outbox redrive --json`.
type redriveView struct {
	Topic     string `json:"topic"`
	Aggregate string `json:"aggregate"`
	Dropped   bool   `json:"dropped"`
	Actor     string `json:"actor"`
	Reason    string `json:"reason"`
}

func newOutboxRedriveCommand() *cobra.Command {
	var by noteFlags
	var event, dropped string
	c := &cobra.Command{
		Use:   "redrive TOPIC AGGREGATE --reason TEXT",
		Short: "Publish the events of a parked aggregate again",
		Long: `redrive has the kept events of an aggregate published, beginning with the one that
failed. With --drop EVENT that event is deleted, and is never published. A relay does so
at its next poll. Nothing changes if the aggregate is parked because of another event than
the one that --drop or --event names: list the parked aggregates again then.

A note with the actor, the time and the reason is kept for ever; semel outbox notes
prints it.`,
		Example:           `  semel outbox redrive orders order-7 --reason "the consumer accepts large orders now"`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if err := by.check(); err != nil {
				return err
			}
			r := store.OutboxRedrive{Topic: args[0], Aggregate: args[1], EventID: event, To: store.Redriving, Actor: by.actor, Reason: by.reason}
			switch {
			case c.Flags().Changed("event") && c.Flags().Changed("drop"):
				return exit.Usagef("give --event or --drop, not both")
			case c.Flags().Changed("event") && event == "", c.Flags().Changed("drop") && dropped == "":
				return exit.Usagef("--event and --drop need the ID of an event, which semel outbox parked lists")
			case dropped != "":
				r.EventID, r.To = dropped, store.Dropping
			}
			return withDB(c, func(ctx context.Context, db *database) error {
				was, err := db.outbox.Redrive(ctx, r)
				switch {
				case err != nil:
					return err
				case !was:
					return &exit.Error{Code: exit.Failed, Err: errors.New("the aggregate is not parked, was redriven before, or is parked because of another event")}
				case terminal.WantsJSON(c):
					return terminal.WriteJSON(c, redriveView{r.Topic, r.Aggregate, dropped != "", r.Actor, r.Reason})
				}
				fmt.Fprintln(c.OutOrStdout(), "redriven: a relay publishes the events at its next poll")
				return nil
			})
		},
	}
	addDB(c)
	by.addFlags(c.Flags())
	c.Flags().StringVar(&event, "event", "", "the ID of the event because of which the aggregate must be parked")
	c.Flags().StringVar(&dropped, "drop", "", "the ID of the event that could not be published: delete it")
	return c
}

// outboxNotesView is the output of `outbox notes --json`.
type outboxNotesView struct {
	Notes []outboxNoteView `json:"notes"`
}

// outboxNoteView is the JSON view of a note about a redrive.
type outboxNoteView struct {
	redriveView

	EventID   string  `json:"event_id"`
	EventType string  `json:"event_type"`
	Age       seconds `json:"age_seconds"`
}

func newOutboxNotesCommand() *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use:   "notes",
		Short: "List the redrives of parked aggregates",
		Long: `notes lists the redrives of parked aggregates, newest first, with the event that could not
be published, the actor and the reason. Notes are kept for ever.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 1 {
				return exit.Usagef("--limit %d is less than one", limit)
			}
			return withDB(c, func(ctx context.Context, db *database) error {
				all, err := db.outbox.Notes(ctx, limit)
				if err != nil {
					return err
				}
				return writeOutboxNotes(c, all)
			})
		},
	}
	addDB(c)
	c.Flags().IntVar(&limit, "limit", store.DefaultLimit, "the largest number of notes")
	return c
}

func writeOutboxNotes(c *cobra.Command, all []store.OutboxNote) error {
	if terminal.WantsJSON(c) {
		v := outboxNotesView{Notes: []outboxNoteView{}}
		for _, n := range all {
			v.Notes = append(v.Notes, outboxNoteView{
				redriveView{n.Topic, n.Aggregate, n.To == store.Dropping, n.Actor, n.Reason}, n.ID, n.Type, seconds(n.Age),
			})
		}
		return terminal.WriteJSON(c, v)
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "AGE\tTOPIC\tAGGREGATE\tEVENT\tTYPE\tDECISION\tACTOR\tREASON")
	for _, n := range all {
		decision := "redriven"
		if n.To == store.Dropping {
			decision = "dropped"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			recordview.Ago(n.Age), recordview.Safe(n.Topic), recordview.Safe(n.Aggregate), n.ID, recordview.Safe(n.Type), decision, recordview.Safe(n.Actor), recordview.Safe(n.Reason))
	}
	_ = w.Flush() // the output is closed: there is no reader
	return nil
}
