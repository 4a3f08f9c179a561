package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/store/postgres"
)

// rewriter may send any text.
type rewriter struct{}

func (rewriter) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return `COMMIT`, nil, nil
}

// Every text that may end a transaction is known as one that may.
func TestReachOf(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		sql  string
		want int
	}{
		{`INSERT INTO t VALUES (1)`, postgres.ReachInside},
		{"\n\t select 1;\n; ", postgres.ReachInside},
		{`(SELECT 1) UNION (SELECT 2)`, postgres.ReachInside},
		{`SELECT CASE WHEN true THEN 'commit' END`, postgres.ReachInside},
		{"-- name: Commit :one\nSELECT 1", postgres.ReachInside},
		{`/* a /* b; */ COMMIT */ SELECT 1`, postgres.ReachInside},
		{`INSERT INTO t VALUES (1); UPDATE t SET n = 2;`, postgres.ReachInside},
		{`ROLLBACK TO SAVEPOINT a`, postgres.ReachInside},
		{`rollback work to a`, postgres.ReachInside},
		{``, postgres.ReachInside},
		{`COMMIT`, postgres.ReachEnd},
		{` commit ; `, postgres.ReachEnd},
		{`END TRANSACTION`, postgres.ReachEnd},
		{`Rollback Work`, postgres.ReachEnd},
		{`abort`, postgres.ReachEnd},
		{"-- done\rCOMMIT", postgres.ReachEnd},
		{"-- done\n/* /* so */ */ COMMIT", postgres.ReachEnd},
		{`COMMIT AND CHAIN`, postgres.ReachBeyond},
		{`ROLLBACK /* to */`, postgres.ReachBeyond},
		{"ROLLBACK -- to\n", postgres.ReachBeyond},
		{`COMMIT PREPARED 'a'`, postgres.ReachBeyond},
		{`PREPARE TRANSACTION 'a'`, postgres.ReachBeyond},
		{`EXECUTE a`, postgres.ReachBeyond},
		{`select_something`, postgres.ReachBeyond}, // may be the name of anything
		{`SELECT 1; COMMIT`, postgres.ReachBeyond},
		{`SELECT ';' /* ; SELECT */; COMMIT`, postgres.ReachBeyond},
		{"SELECT 1 -- ; select\n; COMMIT", postgres.ReachBeyond},
		{`SELECT 1; /* x */ COMMIT`, postgres.ReachBeyond},
		{`SELECT $$;$$; COMMIT; SELECT 1`, postgres.ReachBeyond},
		{`/* open COMMIT`, postgres.ReachInside}, // a syntax error
	} {
		b := &pgx.Batch{}
		b.Queue(row.sql)
		if got := postgres.ReachOf(b); got != row.want {
			t.Errorf("ReachOf(%q) = %d, want %d", row.sql, got, row.want)
		}
		b.Queue(`INSERT INTO t VALUES (1)`)
		want := row.want
		if want == postgres.ReachEnd {
			want = postgres.ReachBeyond
		}
		if got := postgres.ReachOf(b); got != want {
			t.Errorf("ReachOf(%q) with more behind it = %d, want %d", row.sql, got, want)
		}
	}
	for _, row := range []struct {
		arg  any
		want int
	}{{pgx.NamedArgs{"a": 1}, postgres.ReachInside}, {"a", postgres.ReachInside}, {rewriter{}, postgres.ReachBeyond}} {
		b := &pgx.Batch{}
		b.Queue(`SELECT @a`, row.arg)
		if got := postgres.ReachOf(b); got != row.want {
			t.Errorf("ReachOf with a %T = %d, want %d", row.arg, got, row.want)
		}
	}
}
