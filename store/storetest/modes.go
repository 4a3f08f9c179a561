package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

var (
	errHandler = errors.New("storetest: the handler's error")
	errFailure = &semel.Failure{Code: "no", Message: "the operation's failure"}
)

// handlerEnd is how a handler ends.
type handlerEnd int

const (
	succeeds handlerEnd = iota
	fails               // with a failure to keep, and no effect
	refuses             // with NotCommitted, and no effect
	errsOnce            // the first time with an error after its effect
)

// mode is a way to run an operation: policy, function and end of the handler.
type mode[Tx any] struct {
	name            string
	policy          func(v *receiver) semel.Policy
	leased          bool // DoTx commits its claim first
	run             func(w *modeRun[Tx], e *semel.Engine[Tx]) (string, bool, error)
	handlerEnd      handlerEnd
	mayRepeatEffect bool // the policy allows an effect per attempt
	mayEndInDoubt   bool // the record may end as InDoubt
	inTx            bool // the effect is in the transaction
	batch           bool // record and effect are sent as one batch
}

// modeRun is one key that is run in one mode.
type modeRun[Tx any] struct {
	r            *txHarness[Tx]
	mode         mode[Tx]
	call         semel.Call
	receiver     receiver
	runs         atomic.Int32
	beforeEffect func() // called before an effect, if set
}

func modes[Tx any]() []mode[Tx] {
	unset := func(*receiver) semel.Policy { return semel.Policy{} }
	atomically := func(*receiver) semel.Policy { return semel.Atomic() }
	heal := func(v *receiver) semel.Policy { return semel.Heal(v.probe) }
	fenced := func(v *receiver) semel.Policy { return semel.Fenced(v.raise, v.probe) }
	keyed := func(*receiver) semel.Policy { return semel.Keyed() }
	repeat := func(*receiver) semel.Policy { return semel.AtLeastOnce() }
	return append([]mode[Tx]{
		{name: "Hold", policy: unset, run: do[Tx], mayEndInDoubt: true},
		{name: "HoldFails", policy: unset, run: do[Tx], handlerEnd: fails, mayEndInDoubt: true},
		{name: "HoldRefuses", policy: unset, run: do[Tx], handlerEnd: refuses, mayEndInDoubt: true},
		{name: "HoldErrs", policy: unset, run: do[Tx], handlerEnd: errsOnce, mayEndInDoubt: true},
		{name: "HealErrs", policy: heal, run: do[Tx], handlerEnd: errsOnce},
		{name: "FencedErrs", policy: fenced, run: do[Tx], handlerEnd: errsOnce},
		{name: "KeyedErrs", policy: keyed, run: do[Tx], handlerEnd: errsOnce},
		{name: "AtLeastOnceErrs", policy: repeat, run: do[Tx], handlerEnd: errsOnce, mayRepeatEffect: true},
		{name: "Inline", policy: unset, run: doTx[Tx], inTx: true},
		{name: "InlineFails", policy: unset, run: doTx[Tx], inTx: true, handlerEnd: fails},
		{name: "InlineErrs", policy: unset, run: doTx[Tx], inTx: true, handlerEnd: errsOnce},
		{name: "LeasedTx", policy: atomically, leased: true, run: doTx[Tx], inTx: true},
		{name: "LeasedTxFails", policy: atomically, leased: true, run: doTx[Tx], inTx: true, handlerEnd: fails},
		{name: "LeasedTxErrs", policy: atomically, leased: true, run: doTx[Tx], inTx: true, handlerEnd: errsOnce},
		{name: "InTx", policy: atomically, run: doInTx[Tx], inTx: true},
		{name: "InTxErrs", policy: atomically, run: doInTx[Tx], inTx: true, handlerEnd: errsOnce},
	}, batchModes[Tx]()...)
}

// lease is long enough for a handler, and short enough for a check that waits for
// its end.
func (r *harness) lease() time.Duration {
	if r.advance == nil {
		return r.shortLease
	}
	return 30 * time.Second
}

// newModeRun returns a run of an unused key.
func (r *txHarness[Tx]) newModeRun(w mode[Tx], key string) *modeRun[Tx] {
	if why := lacksBatches(r.subject); w.batch && why != "" {
		r.Skip(why)
	}
	k := &modeRun[Tx]{r: r, mode: w}
	k.define(key)
	return k
}

// define makes the call of k with the current lease of the harness.
func (k *modeRun[Tx]) define(key string) {
	o := semel.OperationOptions[string]{Policy: k.mode.policy(&k.receiver)}
	if k.mode.leased {
		o.Lease = k.r.lease()
	}
	k.call = semel.Define("storetest."+k.mode.name, o).Call(semel.ScopeOf("storetest"), key, "input")
}

func (k *modeRun[Tx]) effects() int {
	if k.mode.inTx {
		return k.r.subject.Effects(k.call.ID().String())
	}
	return k.receiver.effects()
}

// result is the unique result of the n-th run.
func (k *modeRun[Tx]) result(n int32) string { return fmt.Sprintf("result of run %d", n) }

// do writes its effect at the receiver.
func do[Tx any](k *modeRun[Tx], e *semel.Engine[Tx]) (string, bool, error) {
	return semel.Do(k.r.ctx, e, k.call, func(ctx context.Context) (string, error) {
		n := k.runs.Add(1)
		k.waitBeforeEffect()
		if err := k.errorBeforeEffect(); err != nil {
			return "", err
		}
		result, err := k.sendEffect(ctx, k.result(n))
		if err == nil && k.mode.handlerEnd == errsOnce && n == 1 {
			err = errHandler
		}
		return result, err
	})
}

func (k *modeRun[Tx]) waitBeforeEffect() {
	if k.beforeEffect != nil {
		k.beforeEffect()
	}
}

// errorBeforeEffect is the error of a handler that ends before its effect.
func (k *modeRun[Tx]) errorBeforeEffect() error {
	switch k.mode.handlerEnd {
	case fails:
		return semel.Final(errFailure)
	case refuses:
		return semel.NotCommitted(errHandler)
	case succeeds, errsOnce:
	}
	return nil
}

func (k *modeRun[Tx]) sendEffect(ctx context.Context, result string) (string, error) {
	if k.mode.name == "KeyedErrs" {
		child, err := semel.ChildKey(ctx, "effect")
		return k.receiver.addEffectOnce(child, result), err
	}
	a, ok := semel.AttemptOf(ctx)
	if !ok {
		return "", errors.New("the handler's context belongs to no attempt")
	}
	return result, k.receiver.addEffect(a.Number(), result)
}

// doTx writes its effect in the transaction.
func doTx[Tx any](k *modeRun[Tx], e *semel.Engine[Tx]) (string, bool, error) {
	return semel.DoTx(k.r.ctx, e, k.call, k.handleTx)
}

func doInTx[Tx any](k *modeRun[Tx], e *semel.Engine[Tx]) (string, bool, error) {
	return semel.Do(k.r.ctx, e, k.call, func(ctx context.Context) (string, error) {
		k.waitBeforeEffect()
		return semel.InTx(ctx, e, k.handleTx)
	})
}

// handleTx writes its effect before it returns an error, so that the rollback has
// something to undo.
func (k *modeRun[Tx]) handleTx(ctx context.Context, tx Tx) (string, error) {
	n := k.runs.Add(1)
	k.waitBeforeEffect()
	if err := k.r.subject.Effect(ctx, tx, k.call.ID().String()); err != nil {
		return "", err
	}
	if err := k.errorBeforeEffect(); err != nil {
		return "", err
	}
	if k.mode.handlerEnd == errsOnce && n == 1 {
		return "", errHandler
	}
	return k.result(n), nil
}

// accepts reports whether the mode allows this last answer.
func (w mode[Tx]) accepts(last answer, stands store.State) bool {
	if w.mayEndInDoubt && errors.Is(last.err, semel.ErrInDoubt) {
		return true // the late leader may have settled the record
	}
	switch w.handlerEnd {
	case fails:
		return isStoredFailure(last)
	case refuses:
		return errors.Is(last.err, errHandler) && stands == store.Pending
	case succeeds, errsOnce:
	}
	return isOK(last)
}
