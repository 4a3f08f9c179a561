package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// Options limit the transactions of Atomic and of AtomicBatch, also behind PgBouncer.
func TestTimeoutSettings(t *testing.T) {
	t.Parallel()
	url := database(t)
	direct := connect(t, url)
	mustExec(t, direct, `ALTER ROLE CURRENT_USER IN DATABASE `+pgx.Identifier{direct.Config().ConnConfig.Database}.Sanitize()+` SET statement_timeout = '7s'`)
	direct.Reset()
	const limits = `concat_ws(' ', current_setting('idle_in_transaction_session_timeout'), current_setting('lock_timeout'), current_setting('statement_timeout'))`
	for _, pool := range []*pgxpool.Pool{direct, connect(t, realtest.PgBouncer(t, url), mode(pgx.QueryExecModeExec))} {
		for i, row := range []struct {
			o    postgres.Options
			want string
		}{
			{postgres.Options{}, "30s 10s 30s"},
			{postgres.Options{IdleInTransaction: time.Minute, LockTimeout: time.Microsecond, StatementTimeout: 1500 * time.Millisecond}, "1min 1ms 1500ms"},
			{postgres.Options{IdleInTransaction: -1, LockTimeout: -1, StatementTimeout: -1}, "0 0 7s"},
		} {
			s := newStore(t, pool, row.o)
			mustExec(t, pool, `TRUNCATE semel_records, effects`)
			var inAtomic, inCallback string
			verdict, err := inTx(t, s, store.ID{1}, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				return nil, tx.QueryRow(ctx, `SELECT `+limits).Scan(&inAtomic)
			})
			check.Result(verdict, err)(t, store.Committed, "Atomic")
			b := &pgx.Batch{}
			b.Queue(`SELECT ` + limits).QueryRow(func(r pgx.Row) error { return r.Scan(&inCallback) })
			for name, b := range map[string]*pgx.Batch{"callback": b, "data": statements(`INSERT INTO effects SELECT ` + limits)} {
				_, verdict, err := s.AtomicBatch(t.Context(), create(fmt.Sprint(name, i), store.Succeeded, 1), true, b)
				check.Result(verdict, err)(t, store.Committed, "AtomicBatch")
			}
			for name, got := range map[string]string{"Atomic": inAtomic, "a batch with a callback": inCallback, "a batch": one[string](t, pool, `SELECT key FROM effects`)} {
				check.Equal(t, got, row.want, "the limits of %s with %+v", name, row.o)
			}
		}
	}
}

// settings are those that the store changes for its own statements.
func settings(t *testing.T, tx pgx.Tx) string {
	t.Helper()
	var all string
	const read = `SELECT string_agg(name || '=' || current_setting(name), ' ') FROM unnest(ARRAY['lock_timeout', 'jit',
'enable_seqscan', 'enable_bitmapscan', 'enable_sort', 'enable_hashjoin', 'enable_mergejoin']) name`
	check.Require(t, tx.QueryRow(t.Context(), read).Scan(&all))
	return all
}

// The settings of the store's own statements do not apply to the handler's statements or to
// triggers that run at the COMMIT. A handler sees those of its own connection, also if the
// connection before had others.
func TestPlannerIsTheHandlers(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{})
	trigger(t, pool, `IF current_setting('enable_seqscan') <> current_setting('enable_indexscan') THEN RAISE 'the planner is not the trigger''s'; END IF`)
	running := create("running", store.InProgress, 1)
	running.To.Due = -1
	mustForce(t, s, running)
	made, beat, finish := create("made", store.Succeeded, 1), move(running, store.InProgress), move(running, store.Succeeded)
	name := pgx.Identifier{pool.Config().ConnConfig.Database}.Sanitize()
	for i, last := range []*store.Change{&made, &beat, nil, &finish} {
		for _, setting := range []string{"enable_seqscan", "enable_indexscan"} { // off for the third transaction
			mustExec(t, pool, fmt.Sprintf(`ALTER DATABASE %s SET %s = %v`, name, setting, i != 2))
		}
		pool.Reset()
		id := store.NewID("test", "scope", "none")
		if last != nil {
			id = last.To.ID
		}
		var got string
		verdict, err := inTx(t, s, id, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
			got = settings(t, tx)
			return last, effect(ctx, tx, "key")
		})
		check.Result(verdict, err)(t, store.Committed, "Atomic")
		tx := check.Must(pool.Begin(t.Context()))(t)
		mustExec(t, tx, `SET LOCAL lock_timeout = '10s'`)
		check.Equal(t, got, settings(t, tx), "the handler's settings")
		check.Require(t, tx.Rollback(t.Context()))
	}
}

// SwapTx leaves the transaction's settings as they were, also when it was Busy,
// and the transaction goes on.
func TestSwapTxLeavesTheSettings(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{})
	for _, n := range []int{2, 17} {
		mine, theirs := batch(fmt.Sprint("mine ", n), n), batch(fmt.Sprint("theirs ", n), n)
		holder := check.Must(pool.Begin(t.Context()))(t)
		check.Must(s.SwapTx(t.Context(), holder, theirs))(t)
		tx := check.Must(pool.Begin(t.Context()))(t)
		mustExec(t, tx, `SET LOCAL lock_timeout = '123ms'; SET LOCAL enable_sort = off`, pgx.QueryExecModeSimpleProtocol)
		before := settings(t, tx)
		for _, changes := range [][]store.Change{mine, mine[:1], theirs[:1], {mine[0], theirs[0]}} {
			check.Must(s.SwapTx(t.Context(), tx, changes))(t)
			check.Equal(t, settings(t, tx), before, "the settings after SwapTx of %d changes", len(changes))
		}
		check.Require(t, tx.Commit(t.Context()))
		check.Require(t, holder.Rollback(t.Context()))
		for i, c := range mine {
			check.Equal(t, current(t, s, c), c.To.Token, "the record of change %d of %d", i, n)
		}
	}
}
