package storetest_test

import (
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

// clock is a clock that tests move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) Now() time.Time          { return time.Unix(1_000_000, c.ahead.Load()) }
func (c *clock) Advance(d time.Duration) { c.ahead.Add(int64(d)) }

func subject(s *memory.Store, advance func(time.Duration)) storetest.Subject[*memory.Tx] {
	of := ledger.MemoryOf(s)
	of.Advance, of.Batches = advance, storetest.BatchesOf(s, ledger.MemoryBatch(of.Effect))
	return of
}
