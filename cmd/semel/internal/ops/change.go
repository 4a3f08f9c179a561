package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/store"
)

// changeFlags is what the commands have in common that send a record round again,
// end it or let it wait: which one, who says so, and why.
type changeFlags struct {
	selectFlags

	reason, actor string
	retention     time.Duration
}

func (g *changeFlags) addFlags(c *cobra.Command) {
	g.selectFlags.addFlags(c)
	f := c.Flags()
	f.StringVar(&g.reason, "reason", "", "why; it is kept")
	f.StringVar(&g.actor, "actor", "", "who says so; $USER if it is not given")
	durationVar(f, &g.retention, "retention", 24*time.Hour, "how long a record is kept from now on that does not say its operation's retention")
}

// check sees whether who and why are told.
func (g *changeFlags) check() error {
	g.actor = cmp.Or(g.actor, os.Getenv("USER"))
	g.reason = strings.TrimSpace(g.reason)
	switch {
	case g.reason == "":
		return exit.Usagef("--reason is required: it is kept, for those who ask later")
	case g.actor == "":
		return errNoActor()
	case g.retention <= 0:
		return exit.Usagef("--retention must be more than zero")
	}
	return nil
}

// changer changes a record that stands, and returns what stands then.
type changer func(ctx context.Context, db *database, was *store.Record) (changedView, error)

// change lets do change the records that the command line names, and writes the state
// before and after each change.
func (g *changeFlags) change(c *cobra.Command, args []string, do changer) error {
	if err := g.check(); err != nil && !g.dryRun {
		return err
	}
	s, err := g.choose(c, args)
	if err != nil {
		return err
	}
	return g.run(c, s, func(ctx context.Context, db *database, id store.ID) (any, string, error) {
		was, err := recordOf(ctx, db, id)
		switch {
		case err != nil:
			return nil, "", err
		case s.all != nil && !s.all.stillHas(was):
			return nil, "", errRefused(was, "which --all does not choose any more")
		}
		v, err := do(ctx, db, was)
		switch {
		case errors.Is(err, semel.ErrInProgress):
			return nil, "", errRecordBusy(id)
		case err != nil:
			return nil, "", fieldFlag(err)
		}
		v.Was, v.Actor, v.Reason = was.State.String(), g.actor, g.reason
		return v, v.line(), nil
	})
}

// errNoActor says how to name the person who makes a change. In containers $USER is often
// not set.
func errNoActor() error {
	return exit.Usagef("--actor is required, because $USER is not set; in a container set USER, for example with docker exec --env USER=NAME")
}

// note is who and why, to be kept with r.
func (g *changeFlags) note(r *store.Record) store.Note {
	return store.Note{ID: r.ID, Actor: g.actor, Reason: g.reason}
}

// changedView is what redrive, cancel and reschedule write with --json: what
// stands now, what stood, and who said so.
type changedView struct {
	recordView

	Was    string `json:"was"`
	Actor  string `json:"actor"`
	Reason string `json:"reason"`
	// Asked is the record that asks the one who runs it to stop.
	Asked string `json:"asked,omitempty"`
}

// line is v for people.
func (v *changedView) line() string {
	if v.Asked != "" {
		return fmt.Sprintf("%s is %s: the worker that runs it is asked to stop, by record %s", v.ID, v.State, v.Asked)
	}
	text := fmt.Sprintf("%s was %s and is %s now", v.ID, v.Was, v.State)
	switch {
	case v.State != store.Pending.String() || v.Due == nil:
	case *v.Due > 0:
		text += ", due in " + ago(time.Duration(*v.Due))
	default:
		text += ", due at once"
	}
	return text
}

// errRefused says that r does not allow what was asked.
func errRefused(r *store.Record, why string) error {
	if r.State == store.Absent {
		return errNotFound(r.ID)
	}
	return &exit.Error{Code: exit.Refused, Err: fmt.Errorf("record %s is %s, %s; nothing was changed", r.ID, r.State, why)}
}
