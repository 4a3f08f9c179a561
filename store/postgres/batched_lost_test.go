package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
)

// calling is a batch whose COMMIT waits for its callbacks.
func calling() *pgx.Batch {
	b := &pgx.Batch{}
	b.Queue(anEffect).Exec(func(pgconn.CommandTag) error { return nil })
	return b
}

// If the connection is lost with the COMMIT, the outcome is unknown; if it is lost
// before, everything is rolled back.
func TestBatchThatIsLost(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		b       func() *pgx.Batch
		arm     func(p *realtest.Proxy) *realtest.Fault
		want    store.Verdict
		effects int
	}{
		{
			"the answer", func() *pgx.Batch { return statements(anEffect) },
			func(p *realtest.Proxy) *realtest.Fault { return p.EatReply(realtest.SQL("INTO effects")) }, store.Unknown, 1,
		},
		{
			"the statements", func() *pgx.Batch { return statements(anEffect) },
			func(p *realtest.Proxy) *realtest.Fault { return p.CutBefore(realtest.SQL("INTO effects")) }, store.Unknown, 0,
		},
		{
			"the answer to COMMIT", calling,
			func(p *realtest.Proxy) *realtest.Fault { return p.EatReply(realtest.SQL("COMMIT")) }, store.Unknown, 1,
		},
		{
			"COMMIT", calling,
			func(p *realtest.Proxy) *realtest.Fault { return p.CutBefore(realtest.SQL("COMMIT")) }, store.Unknown, 0,
		},
		{
			"the answer before COMMIT", calling,
			func(p *realtest.Proxy) *realtest.Fault { return p.EatReply(realtest.SQL("INTO effects")) }, store.NotCommitted, 0,
		},
	} {
		r := breaking(t)
		warm := create("warm", store.Succeeded, 1)
		if _, verdict, err := r.store.AtomicBatch(t.Context(), warm, true, row.b()); verdict != store.Committed {
			t.Fatalf("%s: AtomicBatch = %v, %v, want Committed", row.name, verdict, err)
		}
		mustExec(t, r.direct, `TRUNCATE effects`)
		c := create("key", store.Succeeded, 1)
		fault := row.arm(r.proxy)
		_, verdict, err := r.store.AtomicBatch(t.Context(), c, true, row.b())
		fault.Wait(t)
		if verdict != row.want || err == nil || errors.Is(err, store.ErrInterrupted) != (row.want == store.NotCommitted) {
			t.Errorf("%s lost: AtomicBatch = %v, %v, want %v", row.name, verdict, err, row.want)
		}
		got := settled(t, r.store, create("key", store.Pending, 2)) == c.To.Token
		if n := effects(t, r.direct, "key"); n != row.effects || got != (n == 1) {
			t.Errorf("%s lost: %d effects, and the record is stored: %v, want %d", row.name, n, got, row.effects)
		}
	}
}

// After every lost connection the engine finds out whether the batch was committed, returns
// this to the caller, and a retry has no second effect.
func TestEngineWhoseBatchIsLost(t *testing.T) {
	t.Parallel()
	op := semel.Define("op", semel.OperationOptions[int]{})
	for name, arm := range map[string]func(*realtest.Proxy, realtest.Match) *realtest.Fault{
		"the answer": (*realtest.Proxy).EatReply, "the statements": (*realtest.Proxy).CutBefore,
	} {
		for _, b := range []func() *pgx.Batch{calling, func() *pgx.Batch { return statements(anEffect) }} {
			r := breaking(t)
			engine, err := semel.New(r.store, semel.Options{Survive: store.NoFailure})
			check.Require(t, err)
			ask := func() (int, bool, error) {
				return semel.DoBatch(t.Context(), engine, op.Call(semel.Shared(), "key", 1), func(context.Context) (int, *pgx.Batch, error) {
					return 7, b(), nil
				})
			}
			fault := arm(r.proxy, realtest.SQL("INTO effects"))
			v, replayed, err := ask()
			fault.Wait(t)
			if n := effects(t, r.direct, "key"); replayed || (err == nil) != (n == 1) || err == nil && v != 7 {
				t.Errorf("%s lost: DoBatch = %v, %v, %v with %d effects", name, v, replayed, err, n)
			}
			v, replayed, again := ask()
			if n := effects(t, r.direct, "key"); v != 7 || replayed != (err == nil) || again != nil || n != 1 {
				t.Errorf("%s lost, asked again: DoBatch = %v, %v, %v with %d effects, want one", name, v, replayed, again, n)
			}
		}
	}
}
