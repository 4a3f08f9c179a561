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
	"github.com/spf13/pflag"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/store"
)

// noActor says how to set the actor. In containers $USER is often not set.
const noActor = "--actor is required, because $USER is not set; in a container set USER, for example with docker exec --env USER=NAME"

// noteFlags are the flags for the note about a change.
type noteFlags struct{ reason, actor string }

func (o *noteFlags) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.reason, "reason", "", "the reason; it is kept as a note")
	f.StringVar(&o.actor, "actor", "", "the person who makes the change (default $USER)")
}

// check checks the actor and the reason.
func (o *noteFlags) check() error {
	o.actor = cmp.Or(o.actor, os.Getenv("USER"))
	o.reason = strings.TrimSpace(o.reason)
	var missing []string
	if o.reason == "" {
		missing = append(missing, "--reason is required: it is kept as a note")
	}
	if o.actor == "" {
		missing = append(missing, noActor)
	}
	if missing != nil {
		return exit.Usagef("%s", strings.Join(missing, "; "))
	}
	return nil
}

// changeFlags are the flags that redrive, cancel and reschedule have in common:
// the records, the actor and the reason.
type changeFlags struct {
	selectFlags
	noteFlags

	retention time.Duration
}

func (g *changeFlags) addFlags(c *cobra.Command) {
	g.selectFlags.addFlags(c)
	g.noteFlags.addFlags(c.Flags())
	durationVar(c.Flags(), &g.retention, "retention", 24*time.Hour, "how long to keep a record that has no retention of its operation")
}

// check checks the actor, the reason and the retention.
func (g *changeFlags) check() error {
	if err := g.noteFlags.check(); err != nil {
		return err
	}
	if g.retention <= 0 {
		return exit.Usagef("--retention must be more than zero")
	}
	return nil
}

// changer changes the current record was, and returns the new state.
type changer func(ctx context.Context, db *database, was *store.Record) (changedView, error)

// change applies do to the selected records, and prints the state before and
// after each change.
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
		case s.all != nil && !s.all.stillMatches(was):
			return nil, "", errRefused(was, "which --all no longer selects")
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

// note returns a note about r with the actor and the reason.
func (g *changeFlags) note(r *store.Record) store.Note {
	return store.Note{ID: r.ID, Actor: g.actor, Reason: g.reason}
}

// changedView is the --json output of redrive, cancel and reschedule: the state
// now, the state before, the actor and the reason.
type changedView struct {
	recordView

	Was    string `json:"was"`
	Actor  string `json:"actor"`
	Reason string `json:"reason"`
	// CancelRequest is the record of the request to stop.
	CancelRequest string `json:"asked,omitempty"`
}

// line returns v as a line for people.
func (v *changedView) line() string {
	if v.CancelRequest != "" {
		return fmt.Sprintf("%s is %s: its worker is requested to stop, by record %s", v.ID, v.State, v.CancelRequest)
	}
	text := fmt.Sprintf("%s was %s and is %s now", v.ID, v.Was, v.State)
	switch {
	case v.State != store.Pending.String() || v.Due == nil:
	case *v.Due > 0:
		text += ", due in " + recordview.Ago(time.Duration(*v.Due))
	default:
		text += ", due at once"
	}
	return text
}

// errRefused returns an error for a change that the state of r does not allow.
func errRefused(r *store.Record, why string) error {
	if r.State == store.Absent {
		return errNotFound(r.ID)
	}
	return &exit.Error{Code: exit.Refused, Err: fmt.Errorf("record %s is %s, %s; nothing was changed", r.ID, r.State, why)}
}

// fieldFlag returns err with the flag in place of the engine's field name.
func fieldFlag(err error) error {
	f, ok := errtype.Find[*semel.FieldError](err)
	switch {
	case ok && f.Field == "Retention":
		return exit.Usagef("--retention %s", f.Reason)
	case ok && f.Field == "Result":
		return exit.Usagef("--result %s; --any-form accepts it", f.Reason)
	default:
		return err
	}
}
