package semeltest

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
	errHandler = errors.New("semeltest: the handler's error")
	errFailure = &semel.Failure{Code: "no", Message: "the operation's failure"}
)

// ending is how a handler ends.
type ending int

const (
	succeeds ending = iota
	fails           // with a failure to keep, and no effect
	refuses         // with NotCommitted, and no effect
	errsOnce        // the first time with an error after its effect
)

// way is a way to run an operation.
type way[Tx any] struct {
	name    string
	policy  func(v *receiver) semel.Policy
	leased  bool // DoTx commits its claim first
	run     func(w *work[Tx], e *semel.Engine[Tx]) (string, bool, error)
	end     ending
	repeats bool // the policy allows an effect per attempt
	doubts  bool // the way may end in doubt
	inTx    bool // the effect is in the transaction
	batch   bool // and is handed over with the record
}

// work is one key, run in one way.
type work[Tx any] struct {
	r        *txRig[Tx]
	way      way[Tx]
	call     semel.Call
	receiver receiver
	runs     atomic.Int32
	stall    func() // before an effect; nil: none
}

func ways[Tx any]() []way[Tx] {
	unset := func(*receiver) semel.Policy { return semel.Policy{} }
	atomically := func(*receiver) semel.Policy { return semel.Atomic() }
	heal := func(v *receiver) semel.Policy { return semel.Heal(v.probe) }
	fenced := func(v *receiver) semel.Policy { return semel.Fenced(v.raise, v.probe) }
	keyed := func(*receiver) semel.Policy { return semel.Keyed() }
	repeat := func(*receiver) semel.Policy { return semel.AtLeastOnce() }
	return append([]way[Tx]{
		{name: "Hold", policy: unset, run: do[Tx], doubts: true},
		{name: "HoldFails", policy: unset, run: do[Tx], end: fails, doubts: true},
		{name: "HoldRefuses", policy: unset, run: do[Tx], end: refuses, doubts: true},
		{name: "HoldErrs", policy: unset, run: do[Tx], end: errsOnce, doubts: true},
		{name: "HealErrs", policy: heal, run: do[Tx], end: errsOnce},
		{name: "FencedErrs", policy: fenced, run: do[Tx], end: errsOnce},
		{name: "KeyedErrs", policy: keyed, run: do[Tx], end: errsOnce},
		{name: "AtLeastOnceErrs", policy: repeat, run: do[Tx], end: errsOnce, repeats: true},
		{name: "Inline", policy: unset, run: doTx[Tx], inTx: true},
		{name: "InlineFails", policy: unset, run: doTx[Tx], inTx: true, end: fails},
		{name: "InlineErrs", policy: unset, run: doTx[Tx], inTx: true, end: errsOnce},
		{name: "LeasedTx", policy: atomically, leased: true, run: doTx[Tx], inTx: true},
		{name: "LeasedTxFails", policy: atomically, leased: true, run: doTx[Tx], inTx: true, end: fails},
		{name: "LeasedTxErrs", policy: atomically, leased: true, run: doTx[Tx], inTx: true, end: errsOnce},
		{name: "InTx", policy: atomically, run: doInTx[Tx], inTx: true},
		{name: "InTxErrs", policy: atomically, run: doInTx[Tx], inTx: true, end: errsOnce},
	}, batchWays[Tx]()...)
}

// lease is long enough to run in, and short enough to be waited for.
func (r *rig) lease() time.Duration {
	if r.advance == nil {
		return r.leases
	}
	return 30 * time.Second
}

// newWork is a key that has not been used.
func (r *txRig[Tx]) newWork(w way[Tx], key string) *work[Tx] {
	if why := batches(r.subject); w.batch && why != "" {
		r.Skip(why)
	}
	k := &work[Tx]{r: r, way: w}
	k.define(key)
	return k
}

// define makes the call of k, with the leases that the rig has now.
func (k *work[Tx]) define(key string) {
	o := semel.OperationOptions[string]{Policy: k.way.policy(&k.receiver)}
	if k.way.leased {
		o.Lease = k.r.lease()
	}
	k.call = semel.Define("semeltest."+k.way.name, o).Call(semel.ScopeOf("semeltest"), key, "input")
}

func (k *work[Tx]) effects() int {
	if k.way.inTx {
		return k.r.subject.Effects(k.call.ID().String())
	}
	return k.receiver.effects()
}

// result is what the n-th run returns: no two are equal.
func (k *work[Tx]) result(n int32) string { return fmt.Sprintf("result of run %d", n) }

// do has its effect at the receiver.
func do[Tx any](k *work[Tx], e *semel.Engine[Tx]) (string, bool, error) {
	return semel.Do(k.r.ctx, e, k.call, func(ctx context.Context) (string, error) {
		n := k.runs.Add(1)
		k.wait()
		if err := k.without(); err != nil {
			return "", err
		}
		result, err := k.send(ctx, k.result(n))
		if err == nil && k.way.end == errsOnce && n == 1 {
			err = errHandler
		}
		return result, err
	})
}

func (k *work[Tx]) wait() {
	if k.stall != nil {
		k.stall()
	}
}

// without is the error of a handler that ends before it has an effect.
func (k *work[Tx]) without() error {
	switch k.way.end {
	case fails:
		return semel.Final(errFailure)
	case refuses:
		return semel.NotCommitted(errHandler)
	case succeeds, errsOnce:
	}
	return nil
}

func (k *work[Tx]) send(ctx context.Context, result string) (string, error) {
	if k.way.name == "KeyedErrs" {
		child, err := semel.ChildKey(ctx, "effect")
		return k.receiver.actOnce(child, result), err
	}
	a, ok := semel.AttemptOf(ctx)
	if !ok {
		return "", errors.New("the handler's context belongs to no attempt")
	}
	return result, k.receiver.act(a.Number(), result)
}

// doTx has its effect in the transaction.
func doTx[Tx any](k *work[Tx], e *semel.Engine[Tx]) (string, bool, error) {
	return semel.DoTx(k.r.ctx, e, k.call, k.handle)
}

func doInTx[Tx any](k *work[Tx], e *semel.Engine[Tx]) (string, bool, error) {
	return semel.Do(k.r.ctx, e, k.call, func(ctx context.Context) (string, error) {
		k.wait()
		return semel.InTx(ctx, e, k.handle)
	})
}

// handle has its effect before it errs, so that a rollback has work to do.
func (k *work[Tx]) handle(ctx context.Context, tx Tx) (string, error) {
	n := k.runs.Add(1)
	k.wait()
	if err := k.r.subject.Effect(ctx, tx, k.call.ID().String()); err != nil {
		return "", err
	}
	if err := k.without(); err != nil {
		return "", err
	}
	if k.way.end == errsOnce && n == 1 {
		return "", errHandler
	}
	return k.result(n), nil
}

// wants says whether an answer is one that the way may end with.
func (w way[Tx]) wants(last answer, stands store.State) bool {
	if w.doubts && errors.Is(last.err, semel.ErrInDoubt) {
		return true // the late leader may have settled it meanwhile
	}
	switch w.end {
	case fails:
		return isFailure(last)
	case refuses:
		return errors.Is(last.err, errHandler) && stands == store.Pending
	case succeeds, errsOnce:
	}
	return isOK(last)
}
