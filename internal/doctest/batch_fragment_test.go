package doctest_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
)

// batchFragment contains the fragment of docs/choosing.md.
func batchFragment(ctx context.Context, engine *semel.Engine[pgx.Tx], call semel.Call, req newGroup) (Group, bool, error) {
	group, replayed, err := semel.DoBatch(ctx, engine, call, func(context.Context) (Group, *pgx.Batch, error) {
		b, g := &pgx.Batch{}, Group{ID: rand.Int64()}
		b.Queue(`INSERT INTO groups (id, name) VALUES ($1, $2)`, g.ID, req.Name)
		return g, b, nil
	})
	return group, replayed, err
}

// runBatchFragment calls twice with one key, on a real server with durable settings.
func runBatchFragment(t *testing.T) {
	pool, engine := onPostgres(t.Context(), durableDatabase(t))
	t.Cleanup(pool.Close)
	must(pool.Exec(t.Context(), `CREATE TABLE groups (id bigint PRIMARY KEY, name text NOT NULL)`))
	call := semel.Define("create_group", semel.OperationOptions[newGroup]{}).Call(semel.ScopeOf("ann"), "the-key", newGroup{"friends"})
	for _, wantReplay := range []bool{false, true} {
		group, replayed, err := batchFragment(t.Context(), engine, call, newGroup{"friends"})
		var made int64
		row := pool.QueryRow(t.Context(), `SELECT id FROM groups WHERE name = 'friends'`)
		if found := row.Scan(&made); found != nil || err != nil || replayed != wantReplay || group.ID != made {
			t.Errorf("got %v, %t, %v with group %d (%v), want the one group, %t", group, replayed, err, made, found, wantReplay)
		}
	}
}
