package ops

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/store"
)

// rescheduleFlags are the flags of reschedule.
type rescheduleFlags struct {
	changeFlags

	delay time.Duration
}

func newRescheduleCommand() *cobra.Command {
	var r rescheduleFlags
	c := &cobra.Command{
		Use:   "reschedule " + targetsUse + " --delay DURATION --reason TEXT",
		Short: "Change when a Pending record is due",
		Long: `reschedule makes a Pending record due after --delay, sooner or later than before. No
worker runs it until then.

A note with the actor, the time and the reason is kept for ever; semel show prints it.`,
		Example:           `  semel reschedule 6d3f0b1c2a9e4d7788c1e5f20a4b9c63 --delay 2h --reason "the mail server is being moved"`,
		ValidArgsFunction: completeRecords(store.Pending),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case !c.Flags().Changed("delay"):
				return exit.Usagef("--delay is required; 0 means at once")
			case r.delay < 0:
				return exit.Usagef("--delay %v is less than zero", r.delay)
			}
			return r.change(c, args, r.reschedule)
		},
	}
	r.states = []store.State{store.Pending}
	r.addFlags(c)
	durationVar(c.Flags(), &r.delay, "delay", 0, "the time from now until it is due; 0 means at once")
	return c
}

// reschedule changes the time at which the record was is due.
func (r *rescheduleFlags) reschedule(ctx context.Context, db *database, was *store.Record) (v changedView, err error) {
	n := &pendingNote{Note: r.note(was), to: []store.State{store.Pending}}
	engine, err := db.noting(semel.Options{Retention: r.retention}, n)
	if err != nil {
		return v, err
	}
	now, err := admin.Reschedule(ctx, engine, was.ID, r.delay)
	if errors.Is(err, admin.ErrNotPending) {
		now.ID = was.ID
		return v, errRefused(&now, "not Pending")
	}
	return changedView{recordView: viewOf(&now, db.salt, false)}, err
}
