package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/store"
)

// command is an operator's command that runs instead of the server.
type command struct {
	verb   string
	id     store.ID
	to     store.State
	reason string
}

// The commands.
const (
	verbDoubts  = "doubts"
	verbResolve = "resolve"
	verbFailed  = "failed"
	verbRedrive = "redrive"
)

// parseCommand reads the arguments after the flags. Without arguments the
// program serves.
func parseCommand(args []string) (*command, error) {
	if len(args) == 0 {
		return nil, nil //nolint:nilnil // nil means to serve
	}
	c := &command{verb: args[0]}
	switch {
	case (c.verb == verbDoubts || c.verb == verbFailed) && len(args) == 1:
		return c, nil
	case c.verb == verbResolve && len(args) >= 4:
		c.reason = strings.Join(args[3:], " ")
		return c, errors.Join(c.parseID(args[1]), c.parseState(args[2]))
	case c.verb == verbResolve:
		return nil, errors.New("resolve needs the record's id, pending, failed or succeeded, and a reason")
	case c.verb == verbRedrive && len(args) >= 3:
		c.reason = strings.Join(args[2:], " ")
		return c, c.parseID(args[1])
	case c.verb == verbRedrive:
		return nil, errors.New("redrive needs the record's id, and a reason")
	default:
		return nil, fmt.Errorf("unexpected argument %q", args[0])
	}
}

func (c *command) parseID(id string) (err error) {
	c.id, err = store.ParseID(id)
	return err
}

func (c *command) parseState(to string) error {
	for _, state := range []store.State{store.Pending, store.Failed, store.Succeeded} {
		if strings.EqualFold(to, state.String()) {
			c.to = state
			return nil
		}
	}
	return fmt.Errorf("%q is not what a doubt becomes: want pending, failed or succeeded", to)
}

// do runs the command. A server may be running at the same time.
func (c *command) do(ctx context.Context, s *app, actor string, stdout io.Writer) error {
	var now store.Record
	var err error
	switch c.verb {
	case verbDoubts:
		return s.listDoubts(ctx, stdout)
	case verbFailed:
		return s.listFailed(ctx, stdout)
	case verbResolve:
		for _, e := range s.places() {
			now, err = admin.Resolve(ctx, e, admin.Resolution{ID: c.id, To: c.to, Actor: actor, Reason: c.reason})
			if !errors.Is(err, admin.ErrNotInDoubt) {
				break
			}
		}
	case verbRedrive:
		now, err = admin.Redrive(ctx, s.queue, admin.RedriveRequest{ID: c.id, Actor: actor, Reason: c.reason})
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", c.verb, c.id, err)
	}
	_, _ = fmt.Fprintf(stdout, "%s is %s now\n", now.ID, now.State)
	return nil
}

// places returns the engines of all databases that hold records: one or two.
func (s *app) places() []semel.Runner {
	if s.records == s.domain {
		return []semel.Runner{s.engine.Core}
	}
	return []semel.Runner{s.engine.Core, s.queue.Core}
}

// listDoubts prints the records in doubt, one per line. It does not print keys,
// because they belong to the users.
func (s *app) listDoubts(ctx context.Context, stdout io.Writer) error {
	for _, e := range s.places() {
		err := list(ctx, e, store.Query{State: store.InDoubt}, func(r store.Record) {
			_, user, _ := strings.Cut(r.Scope, ":") // the form that scopeOf makes
			_, _ = fmt.Fprintf(stdout, "%s  %s of user %s, attempt %d, in doubt for %v\n",
				r.ID, r.Operation, user, r.Attempt, r.Since.Round(time.Second))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// listFailed prints the failed tasks and imports, one per line.
func (s *app) listFailed(ctx context.Context, stdout io.Writer) error {
	for _, operation := range queued() {
		err := list(ctx, s.queue.Core, store.Query{State: store.Failed, Operation: operation}, func(r store.Record) {
			_, _ = fmt.Fprintf(stdout, "%s  %s, attempt %d, failed %v ago\n",
				r.ID, r.Operation, r.Attempt, r.Since.Round(time.Second))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// list calls show for each record of a query, and reads a page at a time.
func list(ctx context.Context, e semel.Runner, query store.Query, show func(store.Record)) error {
	query.Limit = store.MaxLimit
	for {
		page, err := admin.List(ctx, e, query)
		if err != nil {
			return err
		}
		for _, r := range page {
			show(r)
			query.After = r.ID
		}
		if len(page) < query.PageSize() {
			return nil
		}
	}
}
