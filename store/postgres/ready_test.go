package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// The server replies to COMMIT after it has committed. That reply is proof, also if
// the connection is lost before the server is ready again. A round trip that is a
// transaction by itself commits after the last of its replies, which prove nothing.
func TestAnswerToCommitIsEnough(t *testing.T) {
	t.Parallel()
	batched := func(b func() *pgx.Batch) func(*testing.T, *postgres.Store, store.Change) store.Verdict {
		return func(t *testing.T, s *postgres.Store, last store.Change) store.Verdict {
			_, verdict, err := s.AtomicBatch(t.Context(), last, true, b())
			return consistent(t, verdict, err)
		}
	}
	ended := func(t *testing.T, s *postgres.Store, last store.Change) store.Verdict {
		verdict, err := finish(t, s, "key", &last)
		return consistent(t, verdict, err)
	}
	for name, row := range map[string]struct {
		end  func(t *testing.T, s *postgres.Store, last store.Change) store.Verdict
		at   string
		want store.Verdict
	}{
		"a transaction":               {ended, "COMMIT", store.Committed},
		"a batch with callbacks":      {batched(calling), "COMMIT", store.Committed},
		"a batch that says its begin": {batched(func() *pgx.Batch { return statements(anEffect, `SET LOCAL work_mem = '1MB'`) }), "COMMIT", store.Committed},
		"a batch by itself":           {batched(func() *pgx.Batch { return statements(anEffect) }), "INTO effects", store.Unknown},
	} {
		for _, m := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
			for _, warm := range []bool{false, true} {
				t.Run(name+" "+m.String()+map[bool]string{true: " again"}[warm], func(t *testing.T) {
					t.Parallel()
					r := breakingIn(t, m)
					if warm {
						for _, key := range []string{"1", "2"} {
							if got := row.end(t, r.store, create(key, store.Succeeded, 1)); got != store.Committed {
								t.Fatalf("the verdict is %v, want Committed", got)
							}
						}
						mustExec(t, r.direct, `TRUNCATE effects`)
					}
					last := create("key", store.Succeeded, 1)
					fault := r.proxy.EatReady(realtest.SQL(row.at))
					check.Equal(t, row.end(t, r.store, last), row.want, "the verdict")
					fault.Wait(t)
					if n := effects(t, r.direct, "key"); n != 1 || current(t, r.store, last) != last.To.Token {
						t.Errorf("%d effects, and the current record is %+v, want one effect and the record of the success", n, current(t, r.store, last))
					}
				})
			}
		}
	}
}

// The same holds for a failure that is kept.
func TestAnswerToCommitOfAFailure(t *testing.T) {
	t.Parallel()
	r := breaking(t)
	last := create("key", store.Failed, 1)
	fault := r.proxy.EatReady(realtest.SQL("COMMIT"))
	verdict, err := r.store.Atomic(t.Context(), last.To.ID, true, func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
		_ = effect(ctx, tx, "key")
		return &last, errHandler
	})
	if consistent(t, verdict, err) != store.Committed {
		t.Errorf("Atomic = %v, %v, want Committed", verdict, err)
	}
	fault.Wait(t)
	if n := effects(t, r.direct, "key"); n != 0 || current(t, r.store, last) != last.To.Token {
		t.Errorf("%d effects, and the current record is %+v, want no effect and the record of the failure", n, current(t, r.store, last))
	}
}

// consistent is the verdict, which has an error unless it is Committed.
func consistent(t *testing.T, verdict store.Verdict, err error) store.Verdict {
	t.Helper()
	if (verdict == store.Committed) != (err == nil) {
		t.Errorf("the verdict is %v, with the error %v", verdict, err)
	}
	return verdict
}

// breakingIn is breaking in a query mode.
func breakingIn(t *testing.T, m pgx.QueryExecMode) rig {
	t.Helper()
	url := database(t)
	proxy := realtest.NewProxy(t, realtest.Postgres(t).Addr())
	return rig{connect(t, url), proxy, newStore(t, connect(t, proxy.URL(url), mode(m), func(c *pgxpool.Config) { c.MaxConns = 2 }), postgres.Options{})}
}
