package semel_test

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// The benchmarks are of one goroutine or of 64, with a result of 256 bytes, over
// the store in memory: what is left is the engine's own. Run them with -benchmem
// and compare with benchstat.

// bill is an input as callers have it.
type bill struct {
	Account  string `json:"account"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	Note     string `json:"note"`
}

var (
	payNow     = semel.Define("create_payment", semel.OperationOptions[bill]{})
	payRaw     = semel.Define("create_payment", semel.OperationOptions[semel.Raw]{})
	payer      = semel.ScopeOf("user-4711")
	paid       = bill{"DE02120300000000202051", 4200, "EUR", strings.Repeat("n", 40)}
	paidResult = semel.Raw(strings.Repeat("r", 256))
	requests   atomic.Int64
)

// newKey is as long as a UUID, and no two are the same.
func newKey() string {
	const pattern = "f81d4fae-7dec-11d0-a765-"
	n := strconv.FormatInt(requests.Add(1), 10)
	return pattern + "000000000000"[len(n):] + n
}

// engineInMemory is an engine over a store in memory that can keep a benchmark's records.
func engineInMemory(b testing.TB, o semel.Options) *semel.Engine[*memory.Tx] {
	b.Helper()
	o.Survive = store.NoFailure
	e := check.Must(semel.New(memory.New(memory.Options{MaxRecords: 1 << 30}), o))(b)
	b.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

func gives(context.Context) (semel.Raw, error) { return paidResult, nil }

// measure reports the time and the allocations of f.
func measure(b *testing.B, f func() error) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		check.Require(b, f())
	}
}

func BenchmarkDoFirst(b *testing.B) {
	e, ctx := engineInMemory(b, semel.Options{}), b.Context()
	measure(b, func() error {
		_, _, err := semel.Do(ctx, e, payNow.Call(payer, newKey(), paid), gives)
		return err
	})
}

func BenchmarkDoReplay(b *testing.B) {
	e, ctx, key := engineInMemory(b, semel.Options{}), b.Context(), newKey()
	measure(b, func() error {
		_, _, err := semel.Do(ctx, e, payNow.Call(payer, key, paid), gives)
		return err
	})
}

// BenchmarkDoTxFirst is a single transaction with no effect of its own.
func BenchmarkDoTxFirst(b *testing.B) {
	e, ctx := engineInMemory(b, semel.Options{}), b.Context()
	run := func(context.Context, *memory.Tx) (semel.Raw, error) { return paidResult, nil }
	measure(b, func() error {
		_, _, err := semel.DoTx(ctx, e, payNow.Call(payer, newKey(), paid), run)
		return err
	})
}

// BenchmarkDo64 has 64 concurrent callers of different keys, whose functions use
// their context as for a remote call.
func BenchmarkDo64(b *testing.B) {
	e, ctx := engineInMemory(b, semel.Options{}), b.Context()
	run := func(ctx context.Context) (semel.Raw, error) { return paidResult, ctx.Err() }
	b.ReportAllocs()
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, _, err := semel.Do(ctx, e, payNow.Call(payer, newKey(), paid), run)
			check.NoError(b, err, "Do")
		}
	})
}

// BenchmarkCall is all that is computed of what a caller hands over.
func BenchmarkCall(b *testing.B) {
	const key = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
	b.Run("json", func(b *testing.B) { measure(b, func() error { _ = payNow.Call(payer, key, paid); return nil }) })
	b.Run("raw", func(b *testing.B) { measure(b, func() error { _ = payRaw.Call(payer, key, paidResult); return nil }) })
}
