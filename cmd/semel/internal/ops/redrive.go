package ops

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/store"
)

// redriveFlags is what the command line says about a dead letter.
type redriveFlags struct {
	changeFlags

	delay   time.Duration
	message bool
}

func newRedriveCommand() *cobra.Command {
	var r redriveFlags
	c := &cobra.Command{
		Use:   "redrive " + targetsUse + " --reason TEXT",
		Short: "Send a task or a message that has failed round again",
		Long: `redrive lets a dead letter, Failed or InDoubt, wait for another attempt, with its
errors and crashes counted anew. Any other Failed record that keeps its input is
accepted, too. It is for keys that the system owns, tasks and messages. What the
callers of any other key were told, that it has failed, stays true for ever: a new
try is a new key.

A dead letter's record says that it is one. Any other record that keeps its input was
enqueued, and is taken for a task. A message keeps none: --message says that you know
the record to be a message's. It is handled when its broker delivers it again.

Who, when and why is kept for ever, and shown by semel show.`,
		Example:           `  semel redrive 6d3f… --reason "the mail server is back"`,
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
	durationVar(c.Flags(), &r.delay, "delay", 0, "how long it waits first")
	c.Flags().BoolVar(&r.message, "message", false,
		"the record is a message's, or another one's whose key no caller chose and was answered for, although it keeps no input")
	return c
}

// mayRedrive tells whether r is a dead letter, or is taken for one.
func (r *redriveFlags) mayRedrive(was *store.Record) bool {
	return semel.IsDeadLetter(*was) || was.State == store.Failed && (len(was.Input) > 0 || r.message)
}

// redrive sends the record round again that was, if its key is the system's.
func (r *redriveFlags) redrive(ctx context.Context, db *database, was *store.Record) (v changedView, err error) {
	dead := semel.IsDeadLetter(*was)
	switch {
	case was.State != store.Failed && !dead:
		return v, errRefused(was, "not a dead letter")
	case !dead && len(was.Input) == 0 && !r.message:
		return v, errRefused(was, "but was not enqueued: what its callers were told stays true, and a new try is a new key (--message, if it is a message)")
	}
	o := semel.Options{Retention: r.retention}
	if !dead { // a dead letter says by itself that it may be redriven
		o.Operations = []semel.Declared{semel.Define(was.Operation, semel.OperationOptions[json.RawMessage]{
			Retry: &semel.Retry{Redelivered: r.message}, Retention: r.retention,
		})}
	}
	engine, err := db.engine(o)
	if err != nil {
		return v, err
	}
	now, err := engine.Redrive(ctx, semel.Redrive{ID: was.ID, Delay: r.delay, Actor: r.actor, Reason: r.reason})
	if errors.Is(err, semel.ErrNotFailed) {
		now.ID = was.ID
		return v, errRefused(&now, "not a dead letter")
	}
	return changedView{recordView: viewOf(&now, db.salt, false)}, err
}
