package ops

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/store"
)

// rescheduleFlags is what the command line says about a record that waits.
type rescheduleFlags struct {
	changeFlags

	delay time.Duration
}

func newRescheduleCommand() *cobra.Command {
	var r rescheduleFlags
	c := &cobra.Command{
		Use:   "reschedule " + targetsUse + " --delay DURATION --reason TEXT",
		Short: "Let what waits be due sooner or later",
		Long: `reschedule lets a Pending record be due after --delay, sooner or later than it was.
Until then nobody runs it.

Who, when and why is kept for ever, and shown by semel show.`,
		Example:           `  semel reschedule 6d3f… --delay 2h --reason "the mail server is being moved"`,
		ValidArgsFunction: completeRecords(store.Pending),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case !c.Flags().Changed("delay"):
				return exit.Usagef("--delay is required: 0 is at once")
			case r.delay < 0:
				return exit.Usagef("--delay %v is less than zero", r.delay)
			}
			return r.change(c, args, r.reschedule)
		},
	}
	r.states = []store.State{store.Pending}
	r.addFlags(c)
	durationVar(c.Flags(), &r.delay, "delay", 0, "how long it waits from now on; 0: it is due at once")
	return c
}

// reschedule lets the record that was wait for a time of its own.
func (r *rescheduleFlags) reschedule(ctx context.Context, db *database, was *store.Record) (v changedView, err error) {
	n := &pendingNote{Note: r.note(was), to: []store.State{store.Pending}}
	engine, err := db.noting(semel.Options{Retention: r.retention}, n)
	if err != nil {
		return v, err
	}
	now, err := engine.Reschedule(ctx, was.ID, r.delay)
	if errors.Is(err, semel.ErrNotPending) {
		now.ID = was.ID
		return v, errRefused(&now, "not Pending")
	}
	return changedView{recordView: viewOf(&now, db.salt, false)}, err
}
