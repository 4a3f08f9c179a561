package engine

import (
	"context"
	"errors"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// unknownCommit settles a commit of change whose reply was lost. The proof is a
// write to the same record: if it is applied, the commit can never be applied; if
// the record has the token of change, it was.
func (a *Attempt) unknownCommit(ctx context.Context, change *store.Change, cause error) txEnd {
	ctx, cancel := a.c.bounded(ctx)
	defer cancel()
	base := a.Record()
	e := a.right.certificate()
	e.Outcome = a.c.interruption(a.call.op, base, a.token.Attempt, cause)
	certificate := protocol.Next(base, e).Change
	answer, err := a.c.writer.proveChange(ctx, &certificate)
	switch {
	case err != nil:
		a.right.keep(e, err)
		return txEnd{current: base, err: a.attemptError(store.Unknown, base.State, errors.Join(cause, err))}
	case answer.Applied(certificate):
		now := recordAfter(certificate, base)
		a.emit(ctx, event.AmbiguousNo, now, cause)
		return txEnd{current: now, err: a.attemptError(a.rollbackVerdict(), store.Pending, &callerr.TxError{Err: cause})}
	case change.To.Token != (store.Token{}) && answer.HasToken(change.To.Token):
		now := recordAfter(*change, base)
		a.emit(ctx, event.AmbiguousYes, now, cause)
		return txEnd{current: now}
	default:
		return txEnd{current: recordOf(answer), superseded: true}
	}
}

// committedByHandler records the success of a function that committed the
// transaction itself, which is not allowed, and then returned fnErr. The effect
// exists without its record, and must not happen again. The store may have
// committed change, the last statement, after all.
func (a *Attempt) committedByHandler(ctx context.Context, change *store.Change, fnErr, cause error) txEnd {
	ctx, cancel := a.c.bounded(ctx)
	defer cancel()
	base := a.Record()
	a.emit(ctx, event.Conflict, base, cause)
	outcome, told := change.To.Outcome, error(nil)
	if fnErr != nil {
		outcome = codec.EncodeTombstone("the function committed its transaction by itself, and then failed")
		told = a.attemptError(store.Committed, store.Succeeded, fnErr)
	}
	var e protocol.Event
	a.endEvent(ctx, &e, outcome, nil)
	d, now, err := a.c.writer.completeAlone(ctx, base, e)
	switch {
	case err != nil && a.right.keep(e, err):
		base.State, base.Outcome = store.Succeeded, outcome
		return txEnd{current: base, err: told}
	case err != nil:
		return txEnd{current: base, err: a.attemptError(store.Committed, base.State, errors.Join(cause, err))}
	case change.To.Token != (store.Token{}) && now.Token == change.To.Token:
		return txEnd{current: recordAfter(*change, base)}
	case d.Answer != protocol.Apply:
		return txEnd{current: now, superseded: true}
	default:
		return txEnd{current: now, err: told}
	}
}

// endedByHandler handles a function that ended its transaction itself with an
// unknown effect. No change of the record can prove anything about it.
func (a *Attempt) endedByHandler(ctx context.Context, cause error) txEnd {
	base := a.Record()
	a.emit(ctx, event.Conflict, base, cause)
	return txEnd{current: base, err: a.attemptError(store.Unknown, base.State, cause)}
}
