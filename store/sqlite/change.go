package sqlite

import (
	"database/sql/driver"

	"github.com/semelgo/semel/store"
)

// statement returns the statement of a change, and appends its arguments to args:
// the time, which a transaction has read, or nil; the new record; and the required
// token.
func statement(args []any, at any, c *store.Change) (verb, []any) {
	to := &c.To
	switch {
	case c.If == store.Token{}:
		return creation(args, at, to)
	case c.If == to.Token:
		args = append(args, at, due(to), expires(to))
		return verbBeat, append(currentArgs(args, c), c.IfDue)
	case ends(c):
		return verbEnd, append(args, at, int64(to.State), expires(to), to.Outcome, to.ID[:], int64(to.Attempt), int64(to.Owner))
	default:
		args = append(args, at, int64(to.State), int64(to.Attempt), int64(to.Owner), due(to), expires(to), to.Tainted,
			to.Input != nil, to.Input, to.Outcome != nil, to.Outcome)
		return verbMove, append(currentArgs(args, c), c.IfDue)
	}
}

func creation(args []any, at any, to *store.Record) (verb, []any) {
	if opens(to) {
		return verbOpen, openArgs(append(args, at), to)
	}
	return verbCreate, append(args, at, int64(to.State), int64(to.Attempt), int64(to.Owner), due(to), to.Tainted,
		to.ID[:], []byte(to.Operation), []byte(to.Scope), []byte(to.Key), to.Fingerprint, int64(to.Priority),
		expires(to), to.Input, to.Outcome)
}

// opens reports whether a created record is a first claim, with nothing that
// verbOpen does not write.
func opens(to *store.Record) bool {
	return to.State == store.InProgress && to.Attempt == 1 && !to.Tainted && to.Priority == 0 &&
		len(to.Input) == 0 && len(to.Outcome) == 0
}

// openArgs appends the arguments of a record that verbOpen creates.
func openArgs(args []any, to *store.Record) []any {
	return append(args, int64(to.Owner), due(to),
		to.ID[:], []byte(to.Operation), []byte(to.Scope), []byte(to.Key), to.Fingerprint)
}

// ends reports whether c is an attempt's own last change, and changes nothing that
// verbEnd does not write.
func ends(c *store.Change) bool {
	to := &c.To
	return c.If.State == store.InProgress && to.Attempt == c.If.Attempt && to.Owner == c.If.Owner && !c.IfDue &&
		due(to) == nil && !to.Tainted && to.Input == nil && to.Outcome != nil
}

// last returns the verb that makes a change only if the mark exists.
func (v verb) last() verb { return v - verbCreate + verbLastCreate }

// due is in microseconds from now, nil for states without Due.
func due(r *store.Record) driver.Value {
	if r.State == store.Pending || r.State == store.InProgress {
		return r.Due.Microseconds()
	}
	return nil
}

// expires is in microseconds from now, nil for never.
func expires(r *store.Record) driver.Value {
	if r.Expire != 0 && !r.State.Unfinished() {
		return r.Expire.Microseconds()
	}
	return nil
}

// currentArgs appends the required token of a change.
func currentArgs(args []any, c *store.Change) []any {
	return append(args, c.To.ID[:], int64(c.If.State), int64(c.If.Attempt), int64(c.If.Owner))
}
