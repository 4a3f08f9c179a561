package semeltest_test

import (
	"context"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semeltest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// payments is the program under test. Its effect is at a payment provider.
type payments[Tx any] struct {
	engine *semel.Engine[Tx]
	charge func(ctx context.Context, idempotencyKey string, cents int) error
}

var pay = semel.Define("pay", semel.OperationOptions[int]{Policy: semel.Keyed(), Lease: time.Minute})

func (p *payments[Tx]) pay(ctx context.Context, user, key string, cents int) (string, error) {
	receipt, _, err := semel.Do(ctx, p.engine, pay.Call(semel.ScopeOf(user), key, cents), func(ctx context.Context) (string, error) {
		child, err := semel.ChildKey(ctx, "charge")
		if err != nil {
			return "", err
		}
		return "receipt of " + key, p.charge(ctx, child, cents)
	})
	return receipt, err
}

// testPay is a test of the program: a customer is charged once, wherever the process
// crashes.
func testPay(t *testing.T) {
	for _, at := range []semeltest.Point{semeltest.BeforeFunction, semeltest.AfterFunction, semeltest.AfterOutcome} {
		t.Run(at.String(), func(t *testing.T) {
			s := memory.New(memory.Options{}) // or the store of the tests' database
			charges := make(map[string]int)
			process := func(s store.TxStore[*memory.Tx]) *payments[*memory.Tx] {
				engine, err := semel.New(s, semel.Options{Survive: store.NoFailure})
				if err != nil {
					t.Fatal(err)
				}
				return &payments[*memory.Tx]{engine, func(_ context.Context, key string, cents int) error {
					charges[key] = cents // as a provider that deduplicates by the key
					return nil
				}}
			}

			_, _ = process(semeltest.Crash(t, s, at)).pay(t.Context(), "ann", "order 7", 500)
			semeltest.Advance(t, s, time.Minute) // the lease of the dead process
			receipt, err := process(s).pay(t.Context(), "ann", "order 7", 500)

			if receipt != "receipt of order 7" || err != nil {
				t.Errorf("got %q, %v", receipt, err)
			}
			if len(charges) != 1 {
				t.Errorf("charges: %v, want one", charges)
			}
		})
	}
}

// In a test file of your own, testPay is TestPay.
func Example() {
	_ = testPay
	// Output:
}
