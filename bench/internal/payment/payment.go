// Package payment is the work that all sides do: an operation with a result of 256
// bytes and no effect, so that only the cost of idempotency is measured.
package payment

import (
	"context"
	"strconv"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/bench/internal/contest"
)

// Size of a result, in bytes.
const Size = 256

// Request is the input.
type Request struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// Create is the operation.
var Create = semel.Define("create_payment", semel.OperationOptions[Request]{})

// Scope returns the scope of a caller's user.
func Scope(caller int) string { return "user-" + strconv.Itoa(1000+caller) }

// Result returns the result of every payment. It must not be changed.
func Result() semel.Raw { return result }

var result = semel.Raw(fill(Size)) //nolint:gochecknoglobals // computed once, so that it is not measured

func fill(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = "semel once, a single time. "[i%27]
	}
	return b
}

// Call returns a call with the key.
func Call(caller int, key string) semel.Call {
	return Create.Call(semel.ScopeOf(Scope(caller)), key, Request{Amount: 4711, Currency: "EUR"})
}

// Do is the side of semel.Do: every key is new.
func Do(e semel.Runner) func(context.Context, *contest.Caller) error {
	return func(ctx context.Context, c *contest.Caller) error {
		_, _, err := semel.Do(ctx, e, Call(c.N, c.Key()), func(context.Context) (semel.Raw, error) { return Result(), nil })
		return err
	}
}
