package semel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestAbandonedClaimsAreReleasedInBatches: released one by one, they would hold
// their keys for longer than their callers wait before a retry.
func TestAbandonedClaimsAreReleasedInBatches(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		p, seen := grouped(t, mem, semel.Options{})
		op := plain("op", semel.OperationOptions[string]{})
		gates := hold(p, seen, 3)
		ctx, giveUp := context.WithCancel(t.Context())
		waits := []<-chan answer{later(func() answer { return do(t.Context(), p, op.Call(me, "first", "in"), returns("first")) })}
		synctest.Wait()
		const many = 20
		for n := range many {
			waits = append(waits, later(func() answer { return do(ctx, p, op.Call(me, fmt.Sprint(n), "in"), returns("v")) }))
		}
		synctest.Wait()
		close(gates[0])
		synctest.Wait() // they are on their way
		giveUp()
		synctest.Wait()
		close(gates[1])
		synctest.Wait() // the first caller releases its claim, and all others wait for it
		close(gates[2])
		for _, wait := range waits {
			<-wait
		}
		if err := p.Close(t.Context()); err != nil {
			t.Fatalf("Close: %v", err)
		}
		for n := range many {
			wantState(t, mem, op.Call(me, fmt.Sprint(n), "in"), store.Pending)
		}
		askings := 0
		for _, batch := range seen.seen() {
			if slices.ContainsFunc(batch, func(c string) bool { return strings.HasSuffix(c, "→Pending") }) {
				askings++
			}
		}
		if askings > 2 {
			t.Errorf("the store was called %d times to release %d claims: %v", askings, many, seen.seen())
		}
	})
}
