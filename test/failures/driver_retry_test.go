package failures_test

import (
	"context"
	"database/sql"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
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
	h := inPostgres(t, url, proxy.URL(url))
	change := store.Change{To: store.Record{
		ID: store.NewID("op", "scope", "key"), Token: store.Token{State: store.InProgress, Attempt: 1, Owner: 7},
		Operation: "op", Scope: "scope", Key: "key",
	}}
	for sent := range 2 { // the second time on purpose
		fault := proxy.EatReply(realtest.SQL(`INSERT INTO "public".semel_records`))
		answers, err := h.Store.Swap(t.Context(), []store.Change{change})
		if err == nil && !answers[0].Applied(change) {
			t.Errorf("sent for the %d. time: %+v, want applied", sent+1, answers[0])
		}
		fault.Disarm()
	}
	answers, err := h.Store.Swap(t.Context(), []store.Change{change})
	if err != nil || !answers[0].Applied(change) {
		t.Errorf("repeated: %+v, %v, want applied", answers, err)
	}

	db, err := sql.Open("pgx", proxy.URL(url))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	fault := proxy.EatReply(realtest.SQL("insert into effects"))
	_, err = db.ExecContext(context.Background(), `insert into effects (key) values ('by hand')`)
	fault.Wait(t)
	t.Logf("the same through database/sql, without arguments: %v, and %d rows where one was asked for", err, h.Effects("by hand"))
}
