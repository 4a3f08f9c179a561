package sim

import (
	"context"
	"time"

	"github.com/semelgo/semel"
)

// mode is one way to run an operation, with the world its effect needs.
type mode struct {
	name         string
	shape        shape
	policy       func() semel.Policy
	lease        time.Duration
	onError      semel.OnError
	receiverKind receiverKind
	doubts       bool // may end in doubt
	repeats      bool // may have an effect per attempt
	retry        bool // the system owns the keys, and tries again
}

// shape is which door of the engine callers use.
type shape uint8

const (
	shapeInline shape = iota // DoTx, one transaction
	shapeLeased              // DoTx, the claim commits first
	shapeInTx                // Do with InTx inside
	shapeDo                  // Do, the effect outside
	shapeBatch               // DoBatch, one transaction that is handed over
)

func (s shape) run(ctx context.Context, a *actor, c semel.Call) (string, bool, error) {
	switch s {
	case shapeInTx:
		return semel.Do(ctx, a.engine, c, func(ctx context.Context) (string, error) {
			return semel.InTx(ctx, a.engine, a.insert)
		})
	case shapeDo:
		return semel.Do(ctx, a.engine, c, a.act)
	case shapeBatch:
		return semel.DoBatch(ctx, a.engine, c, a.batchFunction)
	case shapeInline, shapeLeased:
	}
	return semel.DoTx(ctx, a.engine, c, a.insert)
}

// runsAgain reports whether the policy allows another attempt when the effect of an
// earlier one is unknown.
func (m mode) runsAgain() bool { return m.receiverKind != plain || m.repeats }

// inline tells whether an attempt is one transaction.
func (s shape) inline() bool { return s == shapeInline || s == shapeBatch }

// lease is so long that the engine's own timers never go off: the scheduler says
// when a lease is over.
const lease = 1000 * time.Hour

// modes lists every mode.
func modes() []mode {
	none := func() semel.Policy { return semel.Policy{} }
	heal := func() semel.Policy { return semel.Heal(look) }
	fence := func() semel.Policy { return semel.Fenced(raise, look) }
	return []mode{
		{name: "inline", shape: shapeInline, policy: none},
		{name: "inline-keep", shape: shapeInline, policy: semel.Atomic, onError: semel.Keep},
		{name: "batch", shape: shapeBatch, policy: none},
		{name: "batch-keep", shape: shapeBatch, policy: semel.Atomic, onError: semel.Keep},
		{name: "leased", shape: shapeLeased, policy: semel.Atomic, lease: lease},
		{name: "leased-keep", shape: shapeLeased, policy: semel.Atomic, lease: lease, onError: semel.Keep},
		{name: "intx", shape: shapeInTx, policy: semel.Atomic, lease: lease},
		{name: "hold", shape: shapeDo, policy: none, receiverKind: plain, doubts: true},
		{name: "hold-keep", shape: shapeDo, policy: semel.Hold, onError: semel.Keep, receiverKind: plain, doubts: true},
		{name: "heal", shape: shapeDo, policy: heal, receiverKind: plain, doubts: true},
		{name: "fenced", shape: shapeDo, policy: fence, receiverKind: fenced},
		{name: "keyed", shape: shapeDo, policy: semel.Keyed, receiverKind: keyed},
		{name: "atleastonce", shape: shapeDo, policy: semel.AtLeastOnce, receiverKind: plain, doubts: true, repeats: true},
		{name: "task-tx", shape: shapeInTx, policy: semel.Atomic, lease: lease, retry: true},
		{name: "task-do", shape: shapeDo, policy: semel.AtLeastOnce, receiverKind: plain, doubts: true, repeats: true, retry: true},
		{name: "task-hold", shape: shapeDo, policy: semel.Hold, receiverKind: plain, doubts: true, retry: true},
		{name: "task-keyed", shape: shapeDo, policy: semel.Keyed, receiverKind: keyed, doubts: true, retry: true},
	}
}
