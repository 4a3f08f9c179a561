package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// benchBatches are batches of a lone caller, of a few, and of a crowd.
func benchBatches() []int { return []int{1, 2, 4, 8, 16, 32, 128} }

// BenchmarkSwap claims and completes records by batches of either kind and of both.
// An operation is one record.
func BenchmarkSwap(b *testing.B) {
	for _, n := range benchBatches() {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, _ := open(b, postgres.Options{})
			var claimed []store.Change
			swap := func(fresh int) {
				changes := make([]store.Change, 0, 2*n)
				for _, c := range claimed {
					changes = append(changes, complete(c))
				}
				claimed = claimed[:0]
				for range fresh {
					claimed = append(claimed, claim())
				}
				changes = append(changes, claimed...)
				for i, answer := range check.Must(s.Swap(b.Context(), changes))(b) {
					if !answer.Applied(changes[i]) {
						b.Fatalf("%+v, want it applied", answer)
					}
				}
			}
			warm(b, func() {
				swap((n + 1) / 2)
				swap(0)
			})
			for left := b.N; left > 0 || len(claimed) > 0; {
				fresh := min(left, (n+1)/2) // with what was claimed before, n changes
				swap(fresh)
				left -= fresh
			}
		})
	}
}

// BenchmarkGet reads final records. An operation is one of them.
func BenchmarkGet(b *testing.B) {
	for _, n := range benchBatches() {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, _ := open(b, postgres.Options{})
			ids := make([]store.ID, 1000)
			changes := make([]store.Change, len(ids))
			for i := range ids {
				c := claim()
				c.To = complete(c).To
				changes[i], ids[i] = c, c.To.ID
			}
			check.Must(s.Swap(b.Context(), changes))(b)
			read := func() {
				from := rand.IntN(len(ids) - n + 1)
				if got := check.Must(s.Get(b.Context(), ids[from:from+n]))(b); got[0].Record == nil {
					b.Fatal("there is no record")
				}
			}
			warm(b, read)
			for left := b.N; left > 0; left -= n {
				read()
			}
		})
	}
}

// claim is a leader's change of a new key, of the size that many have.
func claim() store.Change {
	const operation, scope = "create_payment", "7:user-42"
	key := fmt.Sprintf("%016x-%019x", rand.Uint64(), rand.Uint64()) // as long as a UUID
	return store.Change{To: store.Record{
		ID:    store.NewID(operation, scope, key),
		Token: store.Token{State: store.InProgress, Attempt: 1, Owner: rand.Uint64()},
		Due:   30 * time.Second, Operation: operation, Scope: scope, Key: key, Fingerprint: make([]byte, 18),
	}}
}

// complete ends the attempt of c.
func complete(c store.Change) store.Change {
	to := c.To
	to.State, to.Due, to.Expire, to.Outcome = store.Succeeded, 0, 24*time.Hour, result()
	return store.Change{If: c.To.Token, To: to}
}

func result() []byte { return make([]byte, 256) }

// warm runs the statements until they are planned for good, and begins to measure.
func warm(b *testing.B, run func()) {
	b.Helper()
	for range 20 {
		run()
	}
	b.ReportAllocs()
	b.ResetTimer()
}
