package storetest

import "github.com/semelgo/semel"

// batchModes send effect and record as one batch.
func batchModes[Tx any]() []mode[Tx] {
	unset := func(*receiver) semel.Policy { return semel.Policy{} }
	return []mode[Tx]{
		{name: "Batch", policy: unset, run: doBatch[Tx], inTx: true, batch: true},
		{name: "BatchFails", policy: unset, run: doBatch[Tx], inTx: true, batch: true, handlerEnd: fails},
		{name: "BatchErrs", policy: unset, run: doBatch[Tx], inTx: true, batch: true, handlerEnd: errsOnce},
	}
}

// doBatch puts its effect before a statement that fails, so that the rollback has
// something to undo.
func doBatch[Tx any](k *modeRun[Tx], e *semel.Engine[Tx]) (string, bool, error) {
	return k.r.subject.Batches.do(k.r.ctx, e, k.call, func() (string, []Statement, error) {
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
