package plainstore_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/plainstore"
	"github.com/semelgo/semel/store/storetest"
)

// clock is a clock that tests move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) Now() time.Time          { return time.Unix(1_000_000, c.ahead.Load()) }
func (c *clock) Advance(d time.Duration) { c.ahead.Add(int64(d)) }

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.RunStore(t, func(testing.TB) storetest.StoreSubject {
		c := new(clock)
		return plainstore.New(plainstore.Options{Now: c.Now}).Subject(c.Advance)
	})
}

// The suite follows Capabilities: a store may limit the bytes of a Swap, and list records
// in an order of its own.
func TestContractWithLimits(t *testing.T) {
	t.Parallel()
	storetest.RunStore(t, func(testing.TB) storetest.StoreSubject {
		c := new(clock)
		return plainstore.New(plainstore.Options{Now: c.Now, MaxBytes: 5 << 10, MaxOutcome: 2 << 10, Unordered: true}).Subject(c.Advance)
	})
}

// The contract also holds with the real clock and without the optional interfaces.
func TestContractOfABareStore(t *testing.T) {
	t.Parallel()
	storetest.RunStore(t, func(testing.TB) storetest.StoreSubject {
		s := plainstore.New(plainstore.Options{})
		bare := s.Subject(nil)
		bare.Store = s.Bare()
		return bare
	})
}
