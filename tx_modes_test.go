package semel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store/memory"
)

// txMode is one way to commit effect and outcome together.
type txMode struct {
	name   string
	leased bool
	o      semel.OperationOptions[string]
	ask    func(ctx context.Context, p *process, c semel.Call, fn txHandler) answer
}

func txModes() []txMode {
	return []txMode{
		{name: "inline", ask: doTx},
		{name: "leased", leased: true, o: semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: 30 * time.Second}, ask: doTx},
		{name: "InTx", leased: true, o: semel.OperationOptions[string]{Policy: semel.Atomic()}, ask: doInTx},
	}
}

// doInTx runs fn as the only transaction of a Do.
func doInTx(ctx context.Context, p *process, c semel.Call, fn txHandler) answer {
	return do(ctx, p, c, func(ctx context.Context) (string, error) {
		return semel.InTx(ctx, p.Engine, func(ctx context.Context, tx *memory.Tx) (string, error) { return fn(ctx, tx) })
	})
}

// eachTxMode runs test in a bubble for each mode.
func eachTxMode(t *testing.T, test func(t *testing.T, s txMode)) {
	t.Helper()
	t.Parallel()
	for _, s := range txModes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, s) })
		})
	}
}
