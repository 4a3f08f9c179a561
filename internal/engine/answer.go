package engine

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/cache"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// answer returns the answer of the current record.
func (c *Core) answer(ctx context.Context, call *Call, now store.Record) (*Outcome, error) {
	switch answer := protocol.AnswerTo(&now, call.Compare(now)); answer {
	case protocol.Lost:
		return nil, callerr.ErrOutcomeUnknown
	case protocol.Replay:
		return c.replay(ctx, now)
	case protocol.Wait:
		return nil, &callerr.WaitError{After: protocol.RetryAfter(now)}
	default:
		return nil, c.refusal(ctx, call, answer, now)
	}
}

// refusal returns the error of an answer that ends the call.
func (c *Core) refusal(ctx context.Context, call *Call, s protocol.Answer, current store.Record) error {
	switch s {
	case protocol.Mismatch:
		c.emit(ctx, event.Mismatch, current, nil)
		if call.bound && !call.boundElsewhere(current.Fingerprint) {
			return callerr.ErrOtherInput
		}
		return callerr.ErrMismatch
	case protocol.Newer:
		return errNewer
	case protocol.InDoubt:
		return callerr.ErrInDoubt
	case protocol.Lost:
		return callerr.ErrTokenUnknown
	case protocol.Expired:
		return callerr.ErrTokenExpired
	default:
		return fmt.Errorf("%w: the record's state %v is not known to this program", callerr.ErrUnavailable, current.State)
	}
}

// errNewer is temporary: a process of the newer version can answer the call.
var errNewer = fmt.Errorf("%w: a newer version of the program made the record, and this one cannot compare the request with it", callerr.ErrUnavailable)

// replay answers from a final record.
func (c *Core) replay(ctx context.Context, current store.Record) (*Outcome, error) {
	c.emit(ctx, event.Replayed, current, nil)
	if current.State == store.Failed {
		return nil, &callerr.ReplayedError{Failure: codec.DecodeFailure(current.Outcome)}
	}
	return &Outcome{Record: current, Replayed: true}, nil
}

// CachedOutcome is an outcome in the memory of an engine.
type CachedOutcome struct {
	c      *Core
	kept   *cache.Entry
	record store.Record // for the Observer; the entry's own goes with the entry
}

// Cached returns the cached form of o, an outcome that this engine has returned, or
// nil if it is not cached.
func Cached(c *Core, o *Outcome) *CachedOutcome {
	current, k := c.cache.Get(o.Record.ID)
	if k == nil || current.Token != o.Record.Token {
		return nil
	}
	return &CachedOutcome{c, k, o.Record}
}

// Valid reports whether the engine would still answer with the outcome from its
// cache. It emits the event of a replay, so the adapter must then return the
// outcome once. After false, Valid never returns true again. After Close it returns
// false.
func (r *CachedOutcome) Valid(ctx context.Context) bool {
	if r.c.closed.Load() || !r.kept.IsValid() {
		return false
	}
	r.c.emit(ctx, event.Replayed, r.record, nil)
	return true
}
