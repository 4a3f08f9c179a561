package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// answered is the result of one transaction.
type answered struct {
	key     string
	last    store.Change
	verdict store.Verdict
}

// The server is killed, or stopped in immediate mode, while transactions run. Afterwards a
// transaction that was reported as Committed is there, one that was reported as NotCommitted is
// not, and an Unknown one is there completely or not at all.
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
					verdict, _ := inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
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

// mustBeTrue requires that the verdict of a transaction is correct.
func mustBeTrue(t *testing.T, s *postgres.Store, one answered) {
	t.Helper()
	n, token := effects(t, s.Pool(), one.key), current(t, s, one.last)
	stored := token == one.last.To.Token
	switch {
	case n > 1 || stored != (n == 1):
		t.Errorf("%s, reported as %v, has %d effects, and its record is stored: %v", one.key, one.verdict, n, stored)
	case one.verdict == store.Committed && !stored:
		t.Errorf("%s was reported as committed, and is not there", one.key)
	case one.verdict == store.NotCommitted && stored:
		t.Errorf("%s was reported as not committed, and is there", one.key)
	}
}

// After a crash the server reuses the numbers of the transactions that were open. A committed
// transaction with such a number can be another one.
func TestNumberThatIsGivenOutAgain(t *testing.T) {
	t.Parallel()
	server := realtest.OwnPostgres(t)
	url := migrated(t, server)
	records := newStore(t, connect(t, url), postgres.Options{})
	last := create("key", store.Succeeded, 1)
	verdict, err := inTx(t, records, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
		// A text of which it cannot be told whether it ends the transaction.
		check.NoError(t, do(ctx, tx, `DO $$ BEGIN PERFORM 1; END $$`), "DO")
		server.Kill()
		server.Start(t)
		others := connect(t, url)
		for range 50 {
			if _, err := others.Exec(ctx, `SELECT pg_current_xact_id()`); err != nil {
				t.Errorf("another's transaction: %v", err)
			}
		}
		return &last, do(ctx, tx, `SELECT 1`)
	})
	if verdict == store.Committed || err == nil {
		t.Errorf("Atomic = %v, %v, but nothing was ever committed", verdict, err)
	}
}
