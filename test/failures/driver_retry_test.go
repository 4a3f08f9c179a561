package failures_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// Versions 5.9 to 5.12 of pgx report a lost reply as a request that was not sent,
// and database/sql then sends it again: a hand-written claim finds its own row and
// treats its caller as a follower. A record's change is the same change however
// often it is sent.
func TestDriverRunsAStatementTwice(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "postgres")
	server := realtest.Postgres(t)
	url := server.Database(t)
	proxy := realtest.NewProxy(t, server.Addr())
	sendTwice(t, proxy, inPostgres(t, url, proxy.URL(url)).Store)

	other := server.Database(t)
	h := onSubject(ledger.PostgresSQL(t, other, proxy.URL(other), postgres.Options{}), time.Second)
	sendTwice(t, proxy, h.Store)

	// A statement of a handler that looks unsent is not sent again within a transaction.
	last := store.Change{To: store.Record{
		ID: store.NewID("op", "scope", "other"), Token: store.Token{State: store.Succeeded, Attempt: 1, Owner: 7},
		Operation: "op", Scope: "scope", Key: "other",
	}}
	fault := proxy.EatReply(realtest.SQL("insert into effects"))
	verdict, err := h.Store.Atomic(t.Context(), last.To.ID, true, func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
		_, err := tx.ExecContext(ctx, `insert into effects (key) values ('in a transaction')`)
		return &last, err
	})
	fault.Wait(t)
	if n := h.Effects("in a transaction"); verdict != store.NotCommitted || !errors.Is(err, store.ErrInterrupted) || n != 0 {
		t.Errorf("Atomic with a lost reply = %v, %v, and %d effects, want NotCommitted, ErrInterrupted and none", verdict, err, n)
	}

	db, err := sql.Open("pgx", proxy.URL(other))
	check.Require(t, err)
	defer func() { _ = db.Close() }()
	fault = proxy.EatReply(realtest.SQL("insert into effects"))
	_, err = db.ExecContext(context.Background(), `insert into effects (key) values ('by hand')`)
	fault.Wait(t)
	t.Logf("the same through database/sql, without arguments: %v, and %d rows where one was asked for", err, h.Effects("by hand"))
}

// sendTwice loses the reply to a change, and sends it again.
func sendTwice(t *testing.T, proxy *realtest.Proxy, s store.Store) {
	t.Helper()
	change := store.Change{To: store.Record{
		ID: store.NewID("op", "scope", "key"), Token: store.Token{State: store.InProgress, Attempt: 1, Owner: 7},
		Operation: "op", Scope: "scope", Key: "key",
	}}
	for sent := range 2 { // the second time on purpose
		fault := proxy.EatReply(realtest.SQL(`INSERT INTO "public".semel_records`))
		answers, err := s.Swap(t.Context(), []store.Change{change})
		if err == nil && !answers[0].Applied(change) {
			t.Errorf("sent for the %d. time: %+v, want applied", sent+1, answers[0])
		}
		fault.Disarm()
	}
	answers, err := s.Swap(t.Context(), []store.Change{change})
	if err != nil || !answers[0].Applied(change) {
		t.Errorf("repeated: %+v, %v, want applied", answers, err)
	}
}
