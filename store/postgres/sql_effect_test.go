package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store/postgres"
)

// rewriter may send any text.
type rewriter struct{}

func (rewriter) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return `COMMIT`, nil, nil
}

// Every text that may end a transaction is known as one that may.
func TestEffectOf(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		sql  string
		want int
	}{
		{`INSERT INTO t VALUES (1)`, postgres.StaysInside},
		{"\n\t select 1;\n; ", postgres.StaysInside},
		{`(SELECT 1) UNION (SELECT 2)`, postgres.StaysInside},
		{`SELECT CASE WHEN true THEN 'commit' END`, postgres.StaysInside},
		{"-- name: Commit :one\nSELECT 1", postgres.StaysInside},
		{`/* a /* b; */ COMMIT */ SELECT 1`, postgres.MayEndAndWrite}, // nested comments are not read
		{`INSERT INTO t VALUES (1); UPDATE t SET n = 2;`, postgres.StaysInside},
		{`ROLLBACK TO SAVEPOINT a`, postgres.StaysInside},
		{`rollback work to a`, postgres.StaysInside},
		{``, postgres.StaysInside},
		{`COMMIT`, postgres.MayEnd},
		{` commit ; `, postgres.MayEnd},
		{`END TRANSACTION`, postgres.MayEnd},
		{`Rollback Work`, postgres.MayEnd},
		{`abort`, postgres.MayEnd},
		{"-- done\rCOMMIT", postgres.MayEnd},
		{"-- done\n/* /* so */ */ COMMIT", postgres.MayEndAndWrite},
		{`COMMIT AND CHAIN`, postgres.MayEndAndWrite},
		{`ROLLBACK /* to */`, postgres.MayEndAndWrite},
		{"ROLLBACK -- to\n", postgres.MayEndAndWrite},
		{`COMMIT PREPARED 'a'`, postgres.MayEndAndWrite},
		{`PREPARE TRANSACTION 'a'`, postgres.MayEndAndWrite},
		{`EXECUTE a`, postgres.MayEndAndWrite},
		{`select_something`, postgres.MayEndAndWrite}, // may be the name of anything
		{`SELECT 1; COMMIT`, postgres.MayEndAndWrite},
		{`SELECT ';' /* ; SELECT */; COMMIT`, postgres.MayEndAndWrite},
		{"SELECT 1 -- ; select\n; COMMIT", postgres.MayEndAndWrite},
		{`SELECT 1; /* x */ COMMIT`, postgres.MayEndAndWrite},
		{`SELECT $$;$$; COMMIT; SELECT 1`, postgres.MayEndAndWrite},
		{`/* open COMMIT`, postgres.MayEndAndWrite}, // a syntax error
	} {
		b := &pgx.Batch{}
		b.Queue(row.sql)
		check.Equal(t, postgres.EffectOf(b), row.want, "EffectOf(%q)", row.sql)
		b.Queue(`INSERT INTO t VALUES (1)`)
		want := row.want
		if want == postgres.MayEnd {
			want = postgres.MayEndAndWrite
		}
		check.Equal(t, postgres.EffectOf(b), want, "EffectOf(%q) with more behind it", row.sql)
	}
	for _, row := range []struct {
		arg  any
		want int
	}{{pgx.NamedArgs{"a": 1}, postgres.StaysInside}, {"a", postgres.StaysInside}, {rewriter{}, postgres.MayEndAndWrite}} {
		b := &pgx.Batch{}
		b.Queue(`SELECT @a`, row.arg)
		if got := postgres.EffectOf(b); got != row.want {
			t.Errorf("EffectOf with a %T = %d, want %d", row.arg, got, row.want)
		}
	}
}
