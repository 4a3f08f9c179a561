package ops

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

func newCancelCommand() *cobra.Command {
	var g changeFlags
	c := &cobra.Command{
		Use:   "cancel " + targetsUse + " --reason TEXT",
		Short: "End what waits, and ask what runs to stop",
		Long: `cancel ends a Pending record: it is Failed then, with the code "cancelled" and the
reason. Where an earlier attempt may have had an effect it is InDoubt instead.

The worker that runs an InProgress record is asked to stop it. It sees that with its
next heartbeat, and what then becomes of the record depends on what its function
says: a success stays one. A direct call of a program does not look.

Who, when and why is kept for ever, and shown by semel show: of what runs, with the
record that asks.`,
		Example:           `  semel cancel 6d3f… --reason "the customer has left"`,
		ValidArgsFunction: completeRecords(store.Pending),
		RunE: func(c *cobra.Command, args []string) error {
			return g.change(c, args, g.cancel)
		},
	}
	g.states = []store.State{store.Pending, store.InProgress}
	g.addFlags(c)
	return c
}

// cancel ends the record that was, or asks for it.
func (g *changeFlags) cancel(ctx context.Context, db *database, was *store.Record) (v changedView, err error) {
	if !hasDue(was.State) {
		return v, errRefused(was, "neither waiting nor running")
	}
	n := &pendingNote{Note: g.note(was), to: []store.State{store.Failed, store.InDoubt}}
	engine, err := db.noting(semel.Options{Retention: g.retention}, n)
	if err != nil {
		return v, err
	}
	now, err := engine.Cancel(ctx, was.ID, g.reason)
	if err != nil {
		return v, err
	}
	v = changedView{recordView: viewOf(&now, db.salt, false)}
	switch {
	case now.State == store.InProgress:
		v.Asked = n.asked.String()
	case now.State == store.Absent || !n.made:
		now.ID = was.ID
		return v, errRefused(&now, "neither waiting nor running")
	}
	return v, nil
}
