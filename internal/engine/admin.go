package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/journal"
	"github.com/semelgo/semel/store"
)

// Get returns the record of a key, and whether there is one.
func Get(ctx context.Context, c *Core, operation string, scope Scope, key string) (store.Record, bool, error) {
	if err := scope.valid(); err != nil {
		return store.Record{}, false, callerr.Seal(err)
	}
	for _, id := range idsOf(c, operation, scope, key) {
		r, err := c.reader.get(ctx, id)
		if err != nil {
			return r, false, callerr.Seal(err)
		}
		if r.Operation == operation && r.Scope == scope.text && r.Key == key {
			r, _ = publicRecord(r, nil)
			return r, true, nil
		}
	}
	return store.Record{}, false, nil
}

// Read returns the record with that ID, or an Absent one.
func Read(ctx context.Context, c *Core, id store.ID) (store.Record, error) {
	return publicRecord(c.reader.get(ctx, id))
}

// List returns one page of records, for consoles and reports.
func List(ctx context.Context, c *Core, q store.Query) ([]store.Record, error) {
	records, err := c.store.Scan(ctx, q)
	if err != nil {
		return nil, callerr.Seal(fmt.Errorf("%w: list records: %w", callerr.ErrUnavailable, err))
	}
	return records, nil
}

// Resolution is the decision of an operator, or of a reconciler, on a record in
// doubt.
type Resolution struct {
	ID            store.ID
	Attempt       uint32
	To            store.State
	Result        any
	Failure       *callerr.Failure
	Actor, Reason string
}

// Resolve resolves a record in doubt and returns the current record.
func Resolve(ctx context.Context, c *Core, r Resolution) (store.Record, error) {
	return publicRecord(resolveDoubt(ctx, c, r))
}

func resolveDoubt(ctx context.Context, c *Core, r Resolution) (store.Record, error) {
	if !protocol.CanResolve(r.To) {
		return store.Record{}, callerr.Invalid("To", "must be Succeeded, Failed or Pending")
	}
	current, err := c.readForOperator(ctx, r.ID, r.Actor, r.Reason)
	if err != nil {
		return current, err
	}
	d := protocol.Next(current, protocol.Event{
		Step: protocol.StepResolve, To: r.To, Owner: newOwner(), Outcome: resolvedOutcome(c, r, current), Expire: c.retention(current),
	})
	if d.Answer != protocol.Apply || r.Attempt != 0 && r.Attempt != current.Attempt {
		return current, callerr.ErrNotInDoubt
	}
	if r.To == store.Pending {
		if err := withdrawCancel(ctx, c, current); err != nil {
			return current, err
		}
	}
	now, err := c.writeForOperator(ctx, current, d, r.Actor, r.Reason, callerr.ErrNotInDoubt)
	if err == nil {
		c.emit(ctx, event.Resolved, now, nil)
	}
	return now, err
}

// readForOperator returns the current record, for a change that an operator makes for a
// reason.
func (c *Core) readForOperator(ctx context.Context, id store.ID, actor, reason string) (store.Record, error) {
	switch {
	case actor == "":
		return store.Record{}, callerr.Invalid("Actor", "is required")
	case reason == "":
		return store.Record{}, callerr.Invalid("Reason", "is required")
	}
	if err := c.notWithinTx(ctx, false); err != nil {
		return store.Record{}, err
	}
	return c.reader.get(ctx, id)
}

// writeForOperator applies an operator's change, with a note of it. The error is refused
// if the record has changed.
func (c *Core) writeForOperator(ctx context.Context, current store.Record, d protocol.Decision, actor, reason string, refused error) (store.Record, error) {
	change := d.Change
	answer, err := c.writer.swapNoted(ctx, change, store.Note{ID: current.ID, From: change.If, To: change.To.Token, Actor: actor, Reason: reason})
	switch {
	case err != nil:
		return current, fmt.Errorf("%w: %s: %w", callerr.ErrUnavailable, d.Step, err)
	case answer.Busy:
		return current, callerr.ErrInProgress
	case !answer.Applied(change):
		return recordOf(answer), refused
	}
	return recordAfter(change, current), nil
}

// resolvedOutcome returns the outcome that the operator gives, or nil for none.
func resolvedOutcome(c *Core, r Resolution, current store.Record) []byte {
	p, tried := codec.ProgressOf(current)
	switch {
	case r.To == store.Pending && (tried || c.ownsKey(current)):
		return p.Reset(current).Encode(c.caps.MaxOutcome)
	case r.To == store.Failed && r.Failure == nil:
		return codec.EncodeFailure(&callerr.Failure{Message: "resolved as failed"}, c.caps.MaxOutcome)
	case r.To == store.Failed:
		return codec.EncodeFailure(r.Failure, c.caps.MaxOutcome)
	case r.To == store.Succeeded && r.Result == nil:
		return codec.EncodeTombstone("resolved as succeeded, without a result")
	case r.To == store.Succeeded:
		e, _ := c.outcome(r.Result)
		return e.Outcome
	default:
		return nil
	}
}

// Notes lists an operator's changes of a record, oldest first, and nothing if the
// store keeps no notes.
func Notes(ctx context.Context, c *Core, id store.ID) ([]store.Note, error) {
	auditor, ok := c.store.(store.Auditor)
	if !ok {
		return nil, nil
	}
	notes, err := auditor.Notes(ctx, id)
	if err != nil {
		return nil, callerr.Seal(fmt.Errorf("%w: read notes: %w", callerr.ErrUnavailable, err))
	}
	return notes, nil
}

// Purge removes at most limit records past their retention.
func Purge(ctx context.Context, c *Core, limit int) (int, error) {
	n, err := c.store.Purge(ctx, limit)
	if n > 0 {
		c.cache.Clear() // the store does not say which records it removed
	}
	if err != nil {
		return n, callerr.Seal(fmt.Errorf("%w: purge: %w", callerr.ErrUnavailable, err))
	}
	return n, nil
}

// RecordIDs returns the possible IDs of a key's record when the operation's KeyTime
// is not known: the ID of a key without a time, and the ID of a UUIDv7 or ULID.
func RecordIDs(operation string, scope Scope, key string) []store.ID {
	ids := []store.ID{store.NewID(operation, scope.text, key)}
	for _, read := range [...]func(string) (time.Time, bool){UUIDv7Time, ULIDTime} {
		if made, ok := read(key); ok {
			ids = append(ids, store.NewTimedID(operation, scope.text, key, made))
		}
	}
	return ids
}

// idsOf returns RecordIDs, or the only ID if the engine was given the
// operation.
func idsOf(c *Core, operation string, scope Scope, key string) []store.ID {
	if op := c.operations[operation]; op != nil {
		if op.generation > 0 {
			_, ids := op.generationAt(c.options.Clock(), scope.text, key)
			return ids[:]
		}
		if op.keyTime != nil {
			made, ok := op.keyTime(key)
			switch {
			case !ok:
				return nil
			case !made.IsZero():
				return []store.ID{store.NewTimedID(operation, scope.text, key, made)}
			}
			return []store.ID{store.NewID(operation, scope.text, key)}
		}
	}
	return RecordIDs(operation, scope, key)
}

// DeadLetters returns the dead letters of the operation with that name, or of all
// operations when the name is empty: first those that are InDoubt, then those that
// have Failed, in the order of their IDs.
func DeadLetters(ctx context.Context, c *Core, operation string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for _, state := range []store.State{store.InDoubt, store.Failed} {
			if !deadLettersIn(ctx, c, store.Query{State: state, Operation: operation, Limit: store.MaxLimit}, yield) {
				return
			}
		}
	}
}

// deadLettersIn yields the dead letters that q finds, and reports whether the loop
// goes on.
func deadLettersIn(ctx context.Context, c *Core, q store.Query, yield func(store.Record, error) bool) bool {
	for {
		page, err := List(ctx, c, q)
		if err != nil {
			yield(store.Record{}, err)
			return false
		}
		for _, r := range page {
			if q.After = r.ID; !codec.IsDeadLetter(r) {
				continue
			}
			if !yield(publicRecord(r, nil)) {
				return false
			}
		}
		if len(page) < q.PageSize() {
			return true
		}
	}
}

var errNoCounts = fmt.Errorf("semel: the store cannot count its records: %w", errors.ErrUnsupported)

// Counts counts the records by operation and state.
func Counts(ctx context.Context, c *Core) ([]store.Count, error) {
	counter, ok := c.store.(store.Counter)
	if !ok {
		return nil, errNoCounts
	}
	counts, err := counter.Counts(ctx)
	if err != nil {
		return nil, callerr.Seal(fmt.Errorf("%w: count records: %w", callerr.ErrUnavailable, err))
	}
	return counts, nil
}

// Settle records one entry of a journal, as the engine that wrote it would have:
// with the same token, within RecordTimeout.
func Settle(ctx context.Context, c *Core, e journal.Entry) (now store.Record, recorded bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.RecordTimeout)
	defer cancel()
	d, now, err := c.writer.completeAlone(ctx, e.Record, pendingOf(e).event)
	if err != nil {
		return now, false, callerr.Seal(fmt.Errorf("%w: settle: %w", callerr.ErrUnavailable, err))
	}
	return now, d.Answer == protocol.Apply, nil
}

// PolicyOf returns the policy of an operation that the engine was given, and whether it
// was given one of that name.
func PolicyOf(c *Core, operation string) (Policy, bool) {
	op := c.operations[operation]
	if op == nil {
		return Policy{}, false
	}
	return op.policy, true
}

// CallProbe calls the probe of an unfinished record's operation, and writes nothing. If the
// probe finds the effect, CallProbe returns the record as the evidence would complete it.
func CallProbe(ctx context.Context, c *Core, id store.ID) (r store.Record, found bool, err error) {
	current, err := c.reader.get(ctx, id)
	if err != nil {
		return store.Record{}, false, callerr.Seal(err)
	}
	op := c.operations[current.Operation]
	switch {
	case protocol.Next(current, protocol.Event{Step: protocol.StepHeal, Owner: newOwner()}).Answer != protocol.Apply:
		err = callerr.ErrNotInDoubt // no evidence could complete it
	case op == nil || !op.policy.HasProbe():
		err = callerr.ErrNoProbe
	default:
		var outcome []byte
		outcome, err = c.evidence(ctx, op, current)
		switch {
		case err != nil && ctx.Err() != nil:
			err = &callerr.ProbeError{Operation: op.name, Err: errors.Join(ctx.Err(), err)}
		case err != nil:
			err = &callerr.ProbeError{Operation: op.name, Err: err}
		case outcome != nil:
			current.State, current.Outcome, found = store.Succeeded, outcome, true
		}
	}
	r, err = publicRecord(current, err)
	return r, found, err
}
