package memory_test

import (
	"testing"
	"time"

	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "memory")
	storetest.Run(t, func(testing.TB) storetest.Subject[*memory.Tx] {
		now := newClock()
		return subject(memory.New(memory.Options{Now: now.Now}), now.Advance)
	})
}

// The contract also holds with the real clock.
func TestContractWithTheRealClock(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(testing.TB) storetest.Subject[*memory.Tx] {
		return subject(memory.New(memory.Options{}), nil)
	})
}

func subject(s *memory.Store, advance func(time.Duration)) storetest.Subject[*memory.Tx] {
	of := ledger.MemoryOf(s)
	of.Advance, of.Batches = advance, storetest.BatchesOf(s, ledger.MemoryBatch(of.Effect))
	return of
}
