package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// byTable inserts a row into "typed" and makes the change.
func byTable() *pgx.Batch {
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO typed (n) VALUES ($1) RETURNING *`, "1")
	b.Queue(`INSERT INTO effects (key) VALUES ($1)`, "key")
	return b
}

// The statements that pgx has prepared on a connection may be dropped, outdated after a
// change of a table, or too many. Each time the verdict is true, and later transactions on
// the connection are committed.
func TestPreparedStatements(t *testing.T) {
	t.Parallel()
	drop := func(t *testing.T, s *postgres.Store) { mustExec(t, s.Pool(), `DEALLOCATE ALL`) }
	alter := func(text string) func(t *testing.T, s *postgres.Store) {
		return func(t *testing.T, s *postgres.Store) { mustExec(t, s.Pool(), text, pgx.QueryExecModeSimpleProtocol) }
	}
	many := func(t *testing.T, s *postgres.Store) {
		for i := range 600 { // more than pgx keeps
			mustExec(t, s.Pool(), fmt.Sprintf(`SELECT %d`, i))
		}
	}
	within := func(t *testing.T, s *postgres.Store, last store.Change) (store.Verdict, error) {
		return inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
			err := effect(ctx, tx, "key")
			mustExec(t, tx, `DEALLOCATE ALL`)
			return &last, err
		})
	}
	for name, row := range map[string]struct {
		commit, spoiled commitFunc
		spoil           func(t *testing.T, s *postgres.Store)
	}{
		"Atomic, dropped":                   {byAtomic, byAtomic, drop},
		"Atomic, dropped by the handler":    {byAtomic, within, func(*testing.T, *postgres.Store) {}},
		"Atomic, too many":                  {byAtomic, byAtomic, many},
		"AtomicBatch, dropped":              {byBatch(byTable), byBatch(byTable), drop},
		"AtomicBatch, too many":             {byBatch(byTable), byBatch(byTable), many},
		"AtomicBatch, a column more":        {byBatch(byTable), byBatch(byTable), alter(`ALTER TABLE typed ADD m int`)},
		"AtomicBatch, a column of new type": {byBatch(byTable), byBatch(byTable), alter(`ALTER TABLE typed ALTER n TYPE integer USING n::integer`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := open(t, postgres.Options{}, atMost(2))
			others := connect(t, pool.Config().ConnString())
			mustExec(t, others, `CREATE TABLE typed (n text)`)
			committed, failures := 0, 0
			send := func(commit commitFunc, n int) {
				verdict, err := commit(t, s, create(fmt.Sprint(n, " ", failures), store.Succeeded, 1))
				switch {
				case verdict == store.Committed && err == nil:
					committed++
				case verdict == store.NotCommitted && err != nil:
					failures++
				default:
					t.Errorf("transaction %d = %v, %v", n, verdict, err)
				}
				check.Equal(t, effects(t, others, "key"), committed, "transaction %d, %v: effects", n, err)
			}
			for n := range 3 {
				send(row.commit, n)
			}
			check.Equal(t, failures, 0, "transactions that failed before")
			row.spoil(t, s)
			send(row.spoiled, 3)
			for n := 4; n < 40 && committed < 6; n++ { // pgx may drop one statement after the other from its list
				send(row.commit, n)
			}
			if committed < 6 {
				t.Errorf("%d transactions failed, also long after that", failures)
			}
			check.Equal(t, pool.Stat().NewConnsCount(), 1, "connections")
		})
	}
}
