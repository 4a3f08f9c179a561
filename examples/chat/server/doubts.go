package server

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// command is what the program was asked to do instead of serving.
type command struct {
	resolve bool // otherwise it lists
	id      store.ID
	to      store.State
	reason  string
}

// parseCommand reads the arguments after the flags; none means to serve.
func parseCommand(args []string) (*command, error) {
	if len(args) == 0 {
		return nil, nil //nolint:nilnil // no command is what is meant
	}
	switch {
	case args[0] == "doubts" && len(args) == 1:
		return &command{}, nil
	case args[0] == "resolve" && len(args) >= 4:
		return parseResolve(args[1], args[2], strings.Join(args[3:], " "))
	case args[0] == "resolve":
		return nil, errors.New("resolve needs the record's id, pending, failed or succeeded, and a reason")
	default:
		return nil, fmt.Errorf("unexpected argument %q", args[0])
	}
}

func parseResolve(id, to, reason string) (*command, error) {
	c := &command{resolve: true, reason: reason}
	digits, err := hex.DecodeString(id)
	if err != nil || len(digits) != len(c.id) {
		return nil, fmt.Errorf("%q is no record's id", id)
	}
	copy(c.id[:], digits)
	for _, state := range []store.State{store.Pending, store.Failed, store.Succeeded} {
		if strings.EqualFold(to, state.String()) {
			c.to = state
			return c, nil
		}
	}
	return nil, fmt.Errorf("%q is not what a doubt becomes: want pending, failed or succeeded", to)
}

// do carries the command out, beside a server that runs or without one.
func (c *command) do(ctx context.Context, s *app, actor string, stdout io.Writer) error {
	if !c.resolve {
		return s.listDoubts(ctx, stdout)
	}
	now, err := s.engine.Resolve(ctx, semel.Resolution{ID: c.id, To: c.to, Actor: actor, Reason: c.reason})
	if err != nil {
		return fmt.Errorf("resolve %s: %w", c.id, err)
	}
	_, _ = fmt.Fprintf(stdout, "%s is %s now\n", now.ID, now.State)
	return nil
}

// listDoubts writes what nobody knows the end of, a line each. Keys are not
// written: they belong to the users.
func (s *app) listDoubts(ctx context.Context, stdout io.Writer) error {
	query := store.Query{State: store.InDoubt, Limit: store.MaxLimit}
	for {
		page, err := s.engine.List(ctx, query)
		if err != nil {
			return err
		}
		for _, r := range page {
			_, user, _ := strings.Cut(r.Scope, ":") // as scopeOf made it
			_, _ = fmt.Fprintf(stdout, "%s  %s of user %s, attempt %d, in doubt for %v\n",
				r.ID, r.Operation, user, r.Attempt, r.Since.Round(time.Second))
			query.After = r.ID
		}
		if len(page) < query.PageSize() {
			return nil
		}
	}
}
