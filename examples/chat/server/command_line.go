package server

import (
	"errors"
	"fmt"
	"strings"

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
