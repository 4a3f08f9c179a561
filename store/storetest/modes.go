package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

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
type mode struct {
	name            string
	policy          func(v *receiver) semel.Policy
	leased          bool // DoTx commits its claim first
	run             modeFunc
	handlerEnd      handlerEnd
	mayRepeatEffect bool // the policy allows an effect per attempt
	mayEndInDoubt   bool // the record may end as InDoubt
	inTx            bool // the effect is in the transaction
	batch           bool // record and effect are sent as one batch
}

// modeRun is one key that is run in one mode.
type modeRun struct {
	r            *engineHarness
	mode         mode
	call         semel.Call
	receiver     receiver
	runs         atomic.Int32
	beforeEffect func() // called before an effect, if set
}

// modeFunc makes one call of the mode's operation.
type modeFunc func(k *modeRun, e semel.Runner) (string, bool, error)

// modes are the modes whose effect is outside the store.
func modes() []mode {
	unset := func(*receiver) semel.Policy { return semel.Policy{} }
	heal := func(v *receiver) semel.Policy { return semel.Heal(v.probe) }
	fenced := func(v *receiver) semel.Policy { return semel.Fenced(v.raise, v.probe) }
	keyed := func(*receiver) semel.Policy { return semel.Keyed() }
	repeat := func(*receiver) semel.Policy { return semel.AtLeastOnce() }
	return []mode{
		{name: "Hold", policy: unset, run: do, mayEndInDoubt: true},
		{name: "HoldFails", policy: unset, run: do, handlerEnd: fails, mayEndInDoubt: true},
		{name: "HoldRefuses", policy: unset, run: do, handlerEnd: refuses, mayEndInDoubt: true},
		{name: "HoldErrs", policy: unset, run: do, handlerEnd: errsOnce, mayEndInDoubt: true},
		{name: "HealErrs", policy: heal, run: do, handlerEnd: errsOnce},
		{name: "FencedErrs", policy: fenced, run: do, handlerEnd: errsOnce},
		{name: "KeyedErrs", policy: keyed, run: do, handlerEnd: errsOnce},
		{name: "AtLeastOnceErrs", policy: repeat, run: do, handlerEnd: errsOnce, mayRepeatEffect: true},
	}
}

// newModeRun returns a run of an unused key.
func (r *engineHarness) newModeRun(w mode, key string) *modeRun {
	if w.batch {
		if why := r.txModes.lacksBatches(); why != "" {
			r.Skip(why)
		}
	}
	k := &modeRun{r: r, mode: w}
	k.define(key)
	return k
}

// define makes the call of k with the current lease of the harness.
func (k *modeRun) define(key string) {
	o := semel.OperationOptions[string]{Policy: k.mode.policy(&k.receiver)}
	if k.mode.leased {
		o.Lease = k.r.lease()
	}
	k.call = semel.Define("storetest."+k.mode.name, o).Call(semel.ScopeOf("storetest"), key, "input")
}

func (k *modeRun) effects() int {
	if k.mode.inTx {
		return k.r.txModes.effects(k.call.ID().String())
	}
	return k.receiver.effects()
}

// result is the unique result of the n-th run.
func (k *modeRun) result(n int32) string { return fmt.Sprintf("result of run %d", n) }

// do writes its effect at the receiver.
func do(k *modeRun, e semel.Runner) (string, bool, error) {
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

func (k *modeRun) waitBeforeEffect() {
	if k.beforeEffect != nil {
		k.beforeEffect()
	}
}

// errorBeforeEffect is the error of a handler that ends before its effect.
func (k *modeRun) errorBeforeEffect() error {
	switch k.mode.handlerEnd {
	case fails:
		return semel.Final(errFailure)
	case refuses:
		return semel.NotCommitted(errHandler)
	case succeeds, errsOnce:
	}
	return nil
}

func (k *modeRun) sendEffect(ctx context.Context, result string) (string, error) {
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

// accepts reports whether the mode allows this last answer.
func (w mode) accepts(last answer, current store.State) bool {
	if w.mayEndInDoubt && errors.Is(last.err, semel.ErrInDoubt) {
		return true // the late leader may have settled the record
	}
	switch w.handlerEnd {
	case fails:
		return isStoredFailure(last)
	case refuses:
		return errors.Is(last.err, errHandler) && current == store.Pending
	case succeeds, errsOnce:
	}
	return isOK(last)
}
