package storetest

import (
	"context"

	"github.com/semelgo/semel"
)

// txModes runs operations whose effect is in a transaction of the store.
type txModes interface {
	doTx(k *modeRun, e semel.Runner) (string, bool, error)
	doInTx(k *modeRun, e semel.Runner) (string, bool, error)
	doBatch(k *modeRun, e semel.Runner) (string, bool, error)
	lacksBatches() string
	effects(key string) int // that are committed
}

// modesInTx are the modes whose effect is in the transaction that writes the record.
func modesInTx() []mode {
	unset := func(*receiver) semel.Policy { return semel.Policy{} }
	atomically := func(*receiver) semel.Policy { return semel.Atomic() }
	doTx := func(k *modeRun, e semel.Runner) (string, bool, error) { return k.r.txModes.doTx(k, e) }
	doInTx := func(k *modeRun, e semel.Runner) (string, bool, error) { return k.r.txModes.doInTx(k, e) }
	doBatch := func(k *modeRun, e semel.Runner) (string, bool, error) { return k.r.txModes.doBatch(k, e) }
	return []mode{
		{name: "Inline", policy: unset, run: doTx, inTx: true},
		{name: "InlineFails", policy: unset, run: doTx, inTx: true, handlerEnd: fails},
		{name: "InlineErrs", policy: unset, run: doTx, inTx: true, handlerEnd: errsOnce},
		{name: "LeasedTx", policy: atomically, leased: true, run: doTx, inTx: true},
		{name: "LeasedTxFails", policy: atomically, leased: true, run: doTx, inTx: true, handlerEnd: fails},
		{name: "LeasedTxErrs", policy: atomically, leased: true, run: doTx, inTx: true, handlerEnd: errsOnce},
		{name: "InTx", policy: atomically, run: doInTx, inTx: true},
		{name: "InTxErrs", policy: atomically, run: doInTx, inTx: true, handlerEnd: errsOnce},
		{name: "Batch", policy: unset, run: doBatch, inTx: true, batch: true},
		{name: "BatchFails", policy: unset, run: doBatch, inTx: true, batch: true, handlerEnd: fails},
		{name: "BatchErrs", policy: unset, run: doBatch, inTx: true, batch: true, handlerEnd: errsOnce},
	}
}

// doTx writes its effect in the transaction.
func (r *txHarness[Tx]) doTx(k *modeRun, e semel.Runner) (string, bool, error) {
	return semel.DoTx(k.r.ctx, e.(*semel.Engine[Tx]), k.call, r.handleTx(k))
}

func (r *txHarness[Tx]) doInTx(k *modeRun, e semel.Runner) (string, bool, error) {
	return semel.Do(k.r.ctx, e, k.call, func(ctx context.Context) (string, error) {
		k.waitBeforeEffect()
		return semel.InTx(ctx, e.(*semel.Engine[Tx]), r.handleTx(k))
	})
}

// doBatch puts its effect before a statement that fails, so that the rollback has
// something to undo.
func (r *txHarness[Tx]) doBatch(k *modeRun, e semel.Runner) (string, bool, error) {
	return r.subject.Batches.do(k.r.ctx, e.(*semel.Engine[Tx]), k.call, func() (string, []Statement, error) {
		n := k.runs.Add(1)
		if err := k.errorBeforeEffect(); err != nil {
			return "", nil, err
		}
		all := effectsOf(k.call.ID().String())
		if k.mode.handlerEnd == errsOnce && n == 1 {
			all = append(all, Statement{Fails: true})
		}
		return k.result(n), all, nil
	})
}

// handleTx returns a handler that writes its effect before it returns an error, so
// that the rollback has something to undo.
func (r *txHarness[Tx]) handleTx(k *modeRun) func(ctx context.Context, tx Tx) (string, error) {
	return func(ctx context.Context, tx Tx) (string, error) {
		n := k.runs.Add(1)
		k.waitBeforeEffect()
		if err := r.subject.Effect(ctx, tx, k.call.ID().String()); err != nil {
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
}

func (r *txHarness[Tx]) effects(key string) int { return r.subject.Effects(key) }
