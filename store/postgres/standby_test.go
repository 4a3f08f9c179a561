package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// A COMMIT that waits for a missing standby is given up. The primary has it, and
// answers so.
func TestCommitThatNoStandbyConfirms(t *testing.T) {
	t.Parallel()
	pool := connect(t, migrated(t, realtest.OwnPostgres(t, "synchronous_commit=on")))
	s := newStore(t, pool, postgres.Options{})
	mustForce(t, s, create("first", store.Pending, 1)) // finds the tables
	mustExec(t, pool, `ALTER SYSTEM SET synchronous_standby_names = 'nobody'`)
	mustExec(t, pool, `SELECT pg_reload_conf()`)
	s.SetCommitBound(time.Second)
	key, last, verdict := "", store.Change{}, store.Committed
	for i := 0; verdict == store.Committed; i++ { // until the server has read its settings
		key = fmt.Sprint(i)
		last = create(key, store.Succeeded, 1)
		var err error
		if verdict, err = finish(t, s, key, &last); (verdict == store.Committed) != (err == nil) || verdict == store.NotCommitted {
			t.Fatalf("Atomic = %v, %v, want Unknown", verdict, err)
		}
	}
	proof := create(key, store.Pending, 2)
	if got := settled(t, s, proof); got != last.To.Token {
		t.Errorf("%+v stands, want what was committed on the primary", got)
	}
	if n := effects(t, pool, key); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}
