package engine

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// IssueOptions describe what Issue stores.
type IssueOptions struct {
	TTL     time.Duration
	Payload json.RawMessage
	MaxOpen int
}

// maxIssuedGrowth is how much the stored progress of a token grows by the counters of its
// attempts, in bytes.
const maxIssuedGrowth = 256

// Issue writes the Pending record of a call that [Call.Issued] then runs at most once.
func Issue(ctx context.Context, e Runner, c Call, o IssueOptions) error {
	return callerr.Seal(issue(ctx, e.core(), &c, o))
}

func issue(ctx context.Context, c *Core, call *Call, o IssueOptions) error {
	if err := call.valid(); err != nil {
		return err
	}
	switch {
	case o.TTL <= 0:
		return callerr.Invalid("TTL", "must be longer than zero")
	case o.MaxOpen < 0, o.MaxOpen > maxOpenLimit:
		return callerr.Invalid("MaxOpen", "must be 0 to "+strconv.Itoa(maxOpenLimit))
	}
	if err := c.checkOperation(call.op); err != nil {
		return err
	}
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	if err := c.notWithinTx(ctx, false); err != nil {
		return err
	}
	// The record stays longer than the token is valid, so that a late use gets the
	// error "expired" and not "unknown".
	retention := c.options.timesOf(call.op, call.id).Retention
	e := protocol.Event{
		Step: protocol.StepCreate, Owner: newOwner(), Request: call, Identity: call.identity(),
		Expire: o.TTL + min(retention, math.MaxInt64-o.TTL),
	}
	e.Identity.Outcome = c.progress(codec.Progress{Issued: &codec.Issued{MaxAge: o.TTL, Payload: o.Payload}}, call.op, call.id)
	if len(e.Identity.Outcome)+maxIssuedGrowth > c.caps.MaxOutcome {
		return callerr.Invalid("Payload", "is larger than the store keeps")
	}
	if o.MaxOpen > 0 {
		if err := c.reserveToken(ctx, call, o); err != nil {
			return err
		}
	}
	d := protocol.Next(store.Record{}, e)
	answer, err := c.writer.swapBatched(ctx, &d.Change, swapTries)
	switch {
	case errors.Is(err, callerr.ErrRefused):
		return fmt.Errorf("issue a token of %s: %w", call.op.name, err)
	case err != nil:
		return fmt.Errorf("%w: issue a token of %s: %w", callerr.ErrUnavailable, call.op.name, err)
	case !answer.Applied(d.Change): // a token of 256 random bits is never issued twice
		return fmt.Errorf("%w: issue a token of %s: the record is in use", callerr.ErrUnavailable, call.op.name)
	}
	return nil
}

// IssuedPayload returns the payload that was issued for the operation of ctx, and
// whether its record was issued.
func IssuedPayload(ctx context.Context) ([]byte, bool) {
	c, ok := ctx.Value(callKey{}).(Call)
	if !ok || c.issued == nil {
		return nil, false
	}
	return c.issued.payload, true
}

// maxOpenLimit limits the size of a list of open tokens, which every Issue writes.
const maxOpenLimit = 100

// openTokensKey is the key of the list of a scope's open tokens. No token has it, because
// the key of a token is longer.
const openTokensKey = "open"

// openTokens is the first byte of a stored list. Each entry has an ID and the remaining
// time in nanoseconds at the last change of the list.
const (
	openTokens     = 'o'
	openTokenBytes = len(store.ID{}) + 8
)

// openToken is a token that was issued and may be unused.
type openToken struct {
	id   store.ID
	left time.Duration
}

// reserveToken adds a token to the list of its scope, before its record exists. The list
// is one record, which every Issue of the scope replaces by compare-and-swap, so that
// concurrent callers cannot exceed the limit together. Using a token does not write the
// list: only if the list is full are the records of its tokens read.
func (c *Core) reserveToken(ctx context.Context, call *Call, o IssueOptions) error {
	id := store.NewID(call.op.name, call.scope.text, openTokensKey)
	current, err := c.reader.get(ctx, id)
	if err != nil {
		return err
	}
	for range maxRounds {
		open := openTokensIn(current)
		if len(open) >= o.MaxOpen {
			if open, err = c.unused(ctx, open); err != nil {
				return err
			}
		}
		if len(open) >= o.MaxOpen {
			return callerr.ErrTooManyTokens
		}
		change, ok := withOpenToken(call, current, append(open, openToken{call.id, o.TTL}))
		if !ok {
			return fmt.Errorf("%w: the list of open tokens is %v", callerr.ErrUnavailable, current.State)
		}
		answer, err := c.writer.swap(ctx, &change, swapTries)
		switch {
		case err != nil:
			return fmt.Errorf("%w: write the open tokens: %w", callerr.ErrUnavailable, err)
		case answer.Applied(change):
			return nil
		case answer.Busy:
			return &callerr.WaitError{After: protocol.RetryAfter(current)}
		}
		current = recordOf(answer)
	}
	return &callerr.WaitError{After: protocol.RetryAfter(current)}
}

// withOpenToken returns the change that replaces the current list.
func withOpenToken(call *Call, current store.Record, open []openToken) (store.Change, bool) {
	e := protocol.Event{Step: protocol.StepReschedule, Owner: newOwner(), Outcome: []byte{openTokens}}
	for _, t := range open {
		e.Outcome = append(e.Outcome, t.id[:]...)
		e.Outcome = binary.BigEndian.AppendUint64(e.Outcome, uint64(t.left))
		e.Expire = max(e.Expire, t.left)
	}
	if current.Token == (store.Token{}) {
		e.Step, e.Identity = protocol.StepCreate, call.identity()
		e.Identity.ID, e.Identity.Key = store.NewID(call.op.name, call.scope.text, openTokensKey), openTokensKey
		e.Identity.Outcome = e.Outcome
	}
	d := protocol.Next(current, e)
	return d.Change, d.Answer == protocol.Apply
}

// openTokensIn returns the tokens in a list whose time is not over.
func openTokensIn(list store.Record) (open []openToken) {
	if len(list.Outcome) == 0 || list.Outcome[0] != openTokens {
		return nil
	}
	for entry := range slices.Chunk(list.Outcome[1:], openTokenBytes) {
		if len(entry) < openTokenBytes {
			break
		}
		t := openToken{id: store.ID(entry[:len(store.ID{})])}
		t.left = time.Duration(binary.BigEndian.Uint64(entry[len(store.ID{}):])) - list.Since
		if t.left > 0 {
			open = append(open, t)
		}
	}
	return open
}

// unused returns the tokens that may still be used. A token without a record counts: its
// Issue may be about to write the record.
func (c *Core) unused(ctx context.Context, open []openToken) ([]openToken, error) {
	ids := make([]store.ID, len(open))
	for i, t := range open {
		ids[i] = t.id
	}
	records, err := c.reader.getAll(ctx, clock.Now(), ids...)
	if err != nil {
		return nil, err
	}
	var still []openToken
	for i, t := range open {
		switch protocol.AnswerTo(&records[i], protocol.SameRequest) {
		case protocol.Lost, protocol.Wait:
			still = append(still, t)
		default:
		}
	}
	return still, nil
}
