package ops

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/store"
)

func newCancelCommand() *cobra.Command {
	var g changeFlags
	c := &cobra.Command{
		Use:   "cancel " + targetsUse + " --reason TEXT",
		Short: "Cancel a Pending record, or request a running one to stop",
		Long: `cancel ends a Pending record: the record becomes Failed, with the code "cancelled"
and the reason. If an earlier attempt may have had an effect, it becomes InDoubt.

For an InProgress record, cancel requests the worker to stop. The worker sees the
request with its next heartbeat and cancels the function's context. The function's
result then decides: a success stays a success. Direct calls do not see the request.

A note with the actor, the time and the reason is kept for ever; semel show prints
it. For an InProgress record the note also names the record of the request.`,
		Example:           `  semel cancel 6d3f0b1c2a9e4d7788c1e5f20a4b9c63 --reason "the customer has left"`,
		ValidArgsFunction: completeRecords(store.Pending),
		RunE: func(c *cobra.Command, args []string) error {
			return g.change(c, args, g.cancel)
		},
	}
	g.states = []store.State{store.Pending, store.InProgress}
	g.addFlags(c)
	return c
}

// cancel cancels the record was, or requests its worker to stop.
func (g *changeFlags) cancel(ctx context.Context, db *database, was *store.Record) (v changedView, err error) {
	if !recordview.HasDue(was.State) {
		return v, errRefused(was, "neither Pending nor InProgress")
	}
	n := &pendingNote{Note: g.note(was), to: []store.State{store.Failed, store.InDoubt}}
	engine, err := db.noting(semel.Options{Retention: g.retention}, n)
	if err != nil {
		return v, err
	}
	now, err := admin.Cancel(ctx, engine, was.ID, g.reason)
	if err != nil {
		return v, err
	}
	v = changedView{recordView: viewOf(&now, db.salt, false)}
	switch {
	case now.State == store.InProgress:
		v.CancelRequest = n.request.String()
	case now.State == store.Absent || !n.made:
		now.ID = was.ID
		return v, errRefused(&now, "neither Pending nor InProgress")
	}
	return v, nil
}
