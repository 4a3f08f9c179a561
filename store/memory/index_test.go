package memory_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestIndexFindsRows: of thousands of records that are added, and removed in another
// order, each is found exactly as long as it exists.
func TestIndexFindsRows(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := memory.New(memory.Options{Now: clock.Now})
	const records, minutes = 6000, 12
	expires := rand.Perm(records)
	for round := range 3 { // each in the places that the one before has left
		ids := make([]store.ID, records)
		key := func(i int) string { return strconv.Itoa(round*records + i) }
		for i := range records {
			c := create(key(i), store.Succeeded, time.Duration(1+expires[i]%minutes)*time.Minute)
			mustCreate(t, s, c)
			ids[i] = c.To.ID
		}
		for minute := 1; minute <= minutes; minute++ {
			clock.Advance(time.Minute)
			if got, err := s.Purge(t.Context(), records); got != records/minutes || err != nil {
				t.Fatalf("purged %d, %v, want %d", got, err, records/minutes)
			}
			for i, id := range ids {
				got := check.Must(s.Get(t.Context(), []store.ID{id}))(t)
				current := 1+expires[i]%minutes > minute
				if r := got[0].Record; (r != nil) != current || current && (r.ID != id || r.Key != key(i)) {
					t.Fatalf("round %d, minute %d: record %d reads as %+v, current = %v", round, minute, i, r, current)
				}
			}
		}
	}
}
