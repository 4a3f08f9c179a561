package store

import (
	"cmp"
	"errors"
	"fmt"
)

// CheckBatch returns why a batch as a whole is invalid: it has more than most
// changes, or two changes of one record. Stores refuse such a batch before they
// write.
func CheckBatch(changes []Change, most int) error {
	if len(changes) > most {
		return fmt.Errorf("%d changes, at most %d", len(changes), most)
	}
	if len(changes) < 2 {
		return nil
	}
	seen := make(map[ID]struct{}, len(changes))
	for i := range changes {
		id := changes[i].To.ID
		if _, twice := seen[id]; twice {
			return fmt.Errorf("change %d names record %s again", i, id)
		}
		seen[id] = struct{}{}
	}
	return nil
}

// ErrTooManyBytes is the error of a Swap whose inputs and outcomes have more bytes than
// Capabilities.MaxBytes. Nothing was written.
var ErrTooManyBytes = errors.New("semel/store: too many bytes for one Swap")

// CheckBytes returns an ErrTooManyBytes if changes have more than most bytes of inputs
// and outcomes. Zero is no limit.
func CheckBytes(changes []Change, most int) error {
	total := 0
	for i := range changes {
		total += changes[i].Bytes()
	}
	if most > 0 && total > most {
		return fmt.Errorf("%w: inputs and outcomes have %d bytes, at most %d", ErrTooManyBytes, total, most)
	}
	return nil
}

// Bytes returns the size of the change's input and outcome.
func (c *Change) Bytes() int { return len(c.To.Input) + len(c.To.Outcome) }

// Check returns why a change is invalid for any current record: an invalid state,
// or a field that is longer than a store keeps. maxOutcome limits input and
// outcome. The error names the field.
func (c *Change) Check(maxOutcome int) error {
	to := &c.To
	if to.State < Pending || to.State > Failed {
		return fmt.Errorf("record %s: invalid state %v", to.ID, to.State)
	}
	limit := func(field string, n, most int) error {
		if n > most {
			return fmt.Errorf("record %s: %s has %d bytes, at most %d", to.ID, field, n, most)
		}
		return nil
	}
	err := cmp.Or(limit("input", len(to.Input), maxOutcome), limit("outcome", len(to.Outcome), maxOutcome))
	if err != nil || c.If != (Token{}) { // only a create writes the identity
		return err
	}
	if to.Priority < MinPriority || to.Priority > MaxPriority {
		return fmt.Errorf("record %s: priority %d is not from %d to %d", to.ID, to.Priority, MinPriority, MaxPriority)
	}
	return cmp.Or(
		limit("operation", len(to.Operation), MaxOperation), limit("scope", len(to.Scope), MaxScope), limit("key", len(to.Key), MaxKey),
	)
}
