package guard_test

import (
	"strconv"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
)

func loseReplies[Tx any](t *testing.T, d *domain[Tx]) {
	t.Helper()
	found, proven := 0, 0
	for round := range rounds(51) {
		w := newApart(t, d, round%2 == 0)
		key := strconv.Itoa(round)
		var fault *realtest.Fault
		switch round % 3 {
		case 0:
			fault = d.proxy.EatReply(realtest.Commit())
		case 1:
			fault = d.proxy.CutBefore(realtest.Commit())
		case 2:
			fault = d.proxy.CutAfter(realtest.Commit())
		}
		v, _, err := w.do(t.Context(), key)
		fault.Wait(t)
		n := d.count("effects", key)
		switch {
		case err == nil && n == 1 && v == (receipt{7, key}):
			found++
		case semel.VerdictOf(err) == store.NotCommitted && n == 0:
			proven++
		default:
			t.Errorf("round %d: %+v, %v with %d effects", round, v, err, n)
		}
		w.want(key)
	}
	t.Logf("%d were committed, %d were not", found, proven)
	if found == 0 || proven == 0 {
		t.Error("the rounds do not show both ends")
	}
}

// TestSealWaitsForACommit: the connection is lost while the server still executes the
// COMMIT. The seal waits for it and finds the row.
func TestSealWaitsForACommit(t *testing.T) {
	t.Parallel()
	d := onPostgres(t)
	d.Exec(`CREATE FUNCTION await_test() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$`)
	d.Exec(`CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION await_test()`)
	tx := d.Begin()
	must(0, d.ExecTx(t.Context(), tx, `SELECT pg_advisory_xact_lock(1)`))
	t.Cleanup(func() { _ = d.Commit(tx) }) // so that the server can end
	w := newApart(t, d, false)
	fault := d.proxy.CutAfter(realtest.Commit())
	done := make(chan error, 1)
	go func() {
		v, _, err := w.do(t.Context(), "a")
		if v != (receipt{7, "a"}) {
			t.Errorf("got %+v", v)
		}
		done <- err
	}()
	<-fault.Fired() // the server has not answered yet
	realtest.Poll(t, "the seal waits for a lock", func() bool {
		var n int
		d.Scan(&n, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'INSERT INTO semel_guard_rows%'`)
		return n == 1
	})
	if n := d.count("effects", "a"); n != 0 {
		t.Errorf("%d effects before the COMMIT has ended", n)
	}
	must(0, d.Commit(tx))
	check.NoError(t, <-done)
	w.want("a")
}
