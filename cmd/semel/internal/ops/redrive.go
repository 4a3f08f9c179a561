package ops

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/store"
)

// redriveFlags are the flags of redrive.
type redriveFlags struct {
	changeFlags

	delay   time.Duration
	message bool
}

func newRedriveCommand() *cobra.Command {
	var r redriveFlags
	c := &cobra.Command{
		Use:   "redrive " + targetsUse + " --reason TEXT",
		Short: "Run a failed task or message again",
		Long: `redrive makes a dead letter, Failed or InDoubt, Pending again, and counts its errors
and crashes from zero. It also accepts any other Failed record that keeps its input.
It is for keys that the system owns: tasks and messages. For any other key the callers
were told that it failed, and that stays true: a new try needs a new key.

The record of a dead letter is marked as one. Any other record that keeps its input
was enqueued, and counts as a task. A message keeps no input: --message states that
the record is a message's. The message is handled when its broker delivers it again.

A note with the actor, the time and the reason is kept for ever; semel show prints it.`,
		Example:           `  semel redrive 6d3f0b1c2a9e4d7788c1e5f20a4b9c63 --reason "the mail server is back"`,
		ValidArgsFunction: completeRecords(store.Failed),
		RunE: func(c *cobra.Command, args []string) error {
			if r.delay < 0 {
				return exit.Usagef("--delay %v is less than zero", r.delay)
			}
			if r.all && r.message && r.operation == "" {
				return exit.Usagef("--message with --all needs --operation: callers' keys of other operations would run again")
			}
			return r.change(c, args, r.redrive)
		},
	}
	r.states, r.matches = []store.State{store.Failed, store.InDoubt}, r.mayRedrive
	r.addFlags(c)
	durationVar(c.Flags(), &r.delay, "delay", 0, "the delay before the next attempt")
	c.Flags().BoolVar(&r.message, "message", false,
		"the record is a message's, or has another key that no caller chose, although it keeps no input")
	return c
}

// mayRedrive reports whether r is a dead letter, or counts as one because of
// the flags.
func (r *redriveFlags) mayRedrive(was *store.Record) bool {
	return admin.IsDeadLetter(*was) || was.State == store.Failed && (len(was.Input) > 0 || r.message)
}

// redrive redrives the record was, if its key belongs to the system.
func (r *redriveFlags) redrive(ctx context.Context, db *database, was *store.Record) (v changedView, err error) {
	dead := admin.IsDeadLetter(*was)
	switch {
	case was.State != store.Failed && !dead:
		return v, errRefused(was, "not a dead letter")
	case !dead && len(was.Input) == 0 && !r.message:
		return v, errRefused(was, "and was not enqueued: its callers were told that it failed, so a new try needs a new key (--message if it is a message)")
	}
	o := semel.Options{Retention: r.retention}
	if !dead { // the record of a dead letter itself allows the redrive
		o.Operations = []semel.Declared{semel.Define(was.Operation, semel.OperationOptions[json.RawMessage]{
			Retry: &semel.Retry{Redelivered: r.message}, Retention: r.retention,
		})}
	}
	engine, err := db.engine(o)
	if err != nil {
		return v, err
	}
	now, err := admin.Redrive(ctx, engine, admin.RedriveRequest{ID: was.ID, Delay: r.delay, Actor: r.actor, Reason: r.reason})
	if errors.Is(err, admin.ErrNotFailed) {
		now.ID = was.ID
		return v, errRefused(&now, "not a dead letter")
	}
	return changedView{recordView: viewOf(&now, db.salt, false)}, err
}
