package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// answered is the answer to one transaction.
type answered struct {
	key     string
	last    store.Change
	verdict store.Verdict
}

// The server is killed, and stopped at once, while transactions run. What was told
// as committed is there afterwards, what was told as not committed is not, and of
// what is unknown there is all or nothing.
func TestServerEndsUnderLoad(t *testing.T) {
	t.Parallel()
	server := realtest.OwnPostgres(t)
	s := newStore(t, connect(t, migrated(t, server)), postgres.Options{})
	for round, end := range []func(){server.Kill, func() { server.Stop(realtest.Immediate) }} {
		var done atomic.Bool
		var committed atomic.Int32
		loaded := make(chan struct{})
		all := make([][]answered, 8)
		var workers sync.WaitGroup
		for w := range all {
			workers.Go(func() {
				for i := 0; !done.Load(); i++ {
					key := fmt.Sprint(round, w, i)
					last := create(key, store.Succeeded, 1)
					verdict, _ := s.Atomic(t.Context(), last.To.ID, true,
						func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
							return &last, effect(ctx, tx, key)
						})
					if all[w] = append(all[w], answered{key, last, verdict}); verdict == store.Committed && committed.Add(1) == 200 {
						close(loaded)
					}
				}
			})
		}
		<-loaded
		end()
		done.Store(true)
		workers.Wait()
		server.Start(t)
		s.Pool().Reset()
		said := make(map[store.Verdict]int)
		for _, of := range all {
			for _, one := range of {
				mustBeTrue(t, s, one)
				said[one.verdict]++
			}
		}
		if said[store.NotCommitted]+said[store.Unknown] == 0 {
			t.Error("no transaction was lost with the server: the load shows nothing")
		}
		t.Logf("round %d: %v", round, said)
	}
}

// mustBeTrue requires that what was told of a transaction is so.
func mustBeTrue(t *testing.T, s *postgres.Store, one answered) {
	t.Helper()
	n, token := effects(t, s.Pool(), one.key), stands(t, s, one.last)
	stood := token == one.last.To.Token
	switch {
	case n > 1 || stood != (n == 1):
		t.Errorf("%s, told %v, has %d effects, and its record stands: %v", one.key, one.verdict, n, stood)
	case one.verdict == store.Committed && !stood:
		t.Errorf("%s was told committed, and is not there", one.key)
	case one.verdict == store.NotCommitted && stood:
		t.Errorf("%s was told not committed, and is there", one.key)
	}
}
