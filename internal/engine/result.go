package engine

import (
	"context"
	"errors"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/store"
)

// result encodes v, unless the function returned err. If v cannot be stored, the
// outcome is a tombstone: the operation must not run again because of its result.
func (a *Attempt) result(ctx context.Context, v any, err error) []byte {
	if err != nil {
		return nil
	}
	e, why := a.c.outcome(v)
	a.lossless = e.Lossless || why != nil // a tombstone cannot be decoded, so the caller keeps its own value
	switch {
	case why != nil:
		a.emit(ctx, event.Tombstone, a.Record(), why)
	case e.Altered != nil:
		a.emit(ctx, event.Altered, a.Record(), e.Altered)
	}
	return e.Outcome
}

// outcome encodes a result. If the outcome is a tombstone, why says what is wrong
// with the result.
func (c *Core) outcome(v any) (e codec.Encoded, why error) {
	v = codec.ResultOf(v)
	if t, ok := v.(codec.Tombstone); ok {
		return codec.Encoded{Outcome: codec.EncodeTombstone(codec.Cut(string(t), 200))}, errTombstone
	}
	e, why = codec.EncodeResult(v)
	switch {
	case why != nil:
		return codec.Encoded{Outcome: codec.EncodeTombstone("the result cannot be stored: " + codec.Cut(why.Error(), 200))}, why
	case len(e.Outcome) > c.caps.MaxOutcome:
		return codec.Encoded{Outcome: codec.EncodeTombstone("the result is larger than the store keeps")}, errTooLarge
	default:
		return e, nil
	}
}

var (
	errTooLarge  = errors.New("semel: the result is larger than the store keeps")
	errTombstone = errors.New("semel: the adapter cannot return the result again")
)

// evidence probes for the effect of an attempt whose effect is unknown.
func (a *Attempt) evidence(ctx context.Context) []byte {
	ctx, cancel := a.c.bounded(ctx)
	defer cancel()
	outcome, err := a.c.evidence(ctx, a.call.op, a.Record())
	if err != nil {
		a.emit(ctx, event.StoreError, a.Record(), err)
	}
	return outcome
}

// evidence calls the operation's probe and returns the outcome that it found, or
// nil.
func (c *Core) evidence(ctx context.Context, op *operation, current store.Record) ([]byte, error) {
	result, found, err := op.policy.probe(ctx, Scope{text: current.Scope}, current.Key)
	if err != nil || !found {
		return nil, err
	}
	e, _ := c.outcome(result)
	return e.Outcome, nil
}
