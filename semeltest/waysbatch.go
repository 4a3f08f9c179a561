package semeltest

import "github.com/semelgo/semel"

// batchWays hand their effect over with the record.
func batchWays[Tx any]() []way[Tx] {
	unset := func(*receiver) semel.Policy { return semel.Policy{} }
	return []way[Tx]{
		{name: "Batch", policy: unset, run: doBatch[Tx], inTx: true, batch: true},
		{name: "BatchFails", policy: unset, run: doBatch[Tx], inTx: true, batch: true, end: fails},
		{name: "BatchErrs", policy: unset, run: doBatch[Tx], inTx: true, batch: true, end: errsOnce},
	}
}

// doBatch has its effect before a statement that errs, so that a rollback has work
// to do.
func doBatch[Tx any](k *work[Tx], e *semel.Engine[Tx]) (string, bool, error) {
	return k.r.subject.Batches.do(k.r.ctx, e, k.call, func() (string, []Statement, error) {
		n := k.runs.Add(1)
		if err := k.without(); err != nil {
			return "", nil, err
		}
		all := effectsOf(k.call.ID().String())
		if k.way.end == errsOnce && n == 1 {
			all = append(all, Statement{Fails: true})
		}
		return k.result(n), all, nil
	})
}
