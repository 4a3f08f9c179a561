package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/semelgo/semel"
)

// receiverKind is the kind of receiver of a mode's effect.
type receiverKind uint8

const (
	// inRecordsDB: the effect is a row beside the record.
	inRecordsDB receiverKind = iota
	// plain: every call has an effect.
	plain
	// fenced: attempts below the fence are refused.
	fenced
	// keyed: one effect per key; a repeated call gets the first answer.
	keyed
)

// grant is an applied claim: the right to have the effect.
type grant struct {
	row, epoch int
	attempt    uint32
	owner      uint64
	actor      int
	ask        int  // of the actor
	begun      bool // its function was run
	erred      bool // and returned an error
	before     counts
}

// effect is the ground truth: one row in a table that has no unique constraint.
type effect struct {
	grant

	value string
}

// Errors of the world outside.
var (
	errNoAnswer  = errors.New("no answer")
	errRefused   = errors.New("refused")
	errForbidden = errors.New("forbidden")
	errFenced    = errors.New("below the fence")
)

// receiver executes the outside effects of one record.
type receiver struct {
	fence     uint32
	forbidden bool // keyed: the answer it remembers is no
}

// act sends the effect of the attempt that ctx belongs to.
func (a *actor) act(ctx context.Context) (string, error) {
	g := a.grantOf(ctx)
	value := a.stamp()
	a.w.noteBegun(g)
	h := a.call(op{kind: opEffect, row: a.ask.row, attempt: g})
	if h == resultDead {
		return "", errNoAnswer
	}
	value, err := a.w.reach(g, value, h)
	d := digestSeed.text(value)
	if err != nil {
		a.w.noteError(g)
		d = d.text(err.Error())
	}
	a.note(uint64(d))
	a.w.logf("%s", outcomeText(value, err))
	switch {
	case errors.Is(err, errForbidden):
		return "", semel.Final(&semel.Failure{Message: a.stamp() + " is forbidden"})
	case errors.Is(err, errRefused), errors.Is(err, errFenced):
		return "", semel.NotCommitted(fmt.Errorf("%s is %w", a.stamp(), err))
	default:
		return value, err
	}
}

// reach sends an effect and returns the answer that its sender receives.
func (w *world) reach(g grant, value string, h callResult) (string, error) {
	if h == resultOK {
		return w.receive(g, value)
	}
	if h == resultRefused || h == resultForbidden {
		return w.refuse(g, h)
	}
	if h == resultReplyLost {
		_, _ = w.receive(g, value)
	}
	if h == resultLate {
		w.lateRequest(lateRequest{actor: g.actor, effect: g, value: value})
	}
	return "", errNoAnswer
}

func outcomeText(value string, err error) string {
	if err != nil {
		return err.Error()
	}
	return value
}

// grantOf is the claim under which ctx runs.
func (a *actor) grantOf(ctx context.Context) grant {
	g := grant{row: a.ask.row, epoch: a.w.rows[a.ask.row].epoch, actor: a.index, ask: a.callCount}
	if attempt, ok := semel.AttemptOf(ctx); ok {
		g.attempt, g.owner = attempt.Number(), attempt.Token().Owner
		if was, ok := a.w.granted(g); ok {
			g.epoch = was.epoch
		}
	}
	return g
}

// receive carries out an effect at the receiver and returns its answer.
func (w *world) receive(g grant, value string) (string, error) {
	r := &w.receivers[g.row]
	switch w.stage.mode.receiverKind {
	case fenced:
		if g.attempt < r.fence {
			w.mark(MarkFenceHeld)
			return "", errFenced
		}
	case keyed:
		if r.forbidden {
			return "", errForbidden
		}
		if first := w.effectOf(g.row); first != nil {
			w.mark(MarkSecondAnswer)
			return first.value, nil
		}
	case inRecordsDB, plain:
	}
	w.happen(effect{grant: g, value: value})
	return value, nil
}

// refuse rejects an attempt or, with resultForbidden, the request. A receiver
// that remembers keys repeats its first answer, and its rejection holds for
// every attempt.
func (w *world) refuse(g grant, h callResult) (string, error) {
	r := &w.receivers[g.row]
	if w.stage.mode.receiverKind == keyed {
		if first := w.effectOf(g.row); first != nil {
			return first.value, nil
		}
		r.forbidden = true
	}
	if r.forbidden || h == resultForbidden {
		return "", errForbidden
	}
	return "", errRefused
}

// raise is the RaiseFunc of policy Fenced.
func raise(ctx context.Context, _ semel.Scope, _ string, attempt uint32) error {
	a := actorOf(ctx)
	h := a.call(op{kind: opRaise, row: a.ask.row, attempt: grant{attempt: attempt}})
	if h == resultOK || h == resultReplyLost {
		r := &a.w.receivers[a.ask.row]
		r.fence = max(r.fence, attempt)
	}
	if h != resultOK {
		return errNoAnswer
	}
	return nil
}

// look is the probe of policies Heal and Fenced.
func look(ctx context.Context, scope semel.Scope, _ string) (any, bool, error) {
	a := actorOf(ctx)
	row := a.w.rowOf(scope)
	h := a.call(op{kind: opLook, row: row})
	if h != resultOK {
		return nil, false, errNoAnswer
	}
	found := a.w.effectOf(row)
	if found == nil {
		a.note(0)
		a.w.logf("nothing found")
		return nil, false, nil
	}
	a.note(uint64(digestSeed.text(found.value)))
	a.w.logf("found %q", found.value)
	return found.value, true, nil
}

// effectOf is the first effect of the current record, or nil.
func (w *world) effectOf(row int) *effect {
	for i := range w.effects {
		if e := &w.effects[i]; e.row == row && e.epoch == w.rows[row].epoch {
			return e
		}
	}
	return nil
}
