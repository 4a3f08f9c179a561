package doctest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/semelhttp/client"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/postgres"
)

// onPostgres contains the README's fragment.
func onPostgres(ctx context.Context, databaseURL string) (*pgxpool.Pool, *semel.Engine[pgx.Tx]) {
	pool := must(pgxpool.New(ctx, databaseURL))
	must(0, pgmigrate.Up(ctx, pool, pgmigrate.Options{}))
	engine := must(semel.New(must(postgres.New(pool, postgres.Options{})), semel.Options{}))
	return pool, engine
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// durableDatabase returns the URL of a new database on a server with durable settings,
// which the fragments' engines require.
func durableDatabase(t *testing.T) string {
	t.Helper()
	return realtest.OwnPostgres(t, "fsync=on", "full_page_writes=on").Database(t)
}

// runPostgresFragment calls twice with one key, on a real server with durable settings.
func runPostgresFragment(t *testing.T) {
	pool, engine := onPostgres(t.Context(), durableDatabase(t))
	t.Cleanup(pool.Close)
	call := semel.Define("create_group", semel.OperationOptions[newGroup]{}).Call(semel.ScopeOf("ann"), "the-key", newGroup{"friends"})
	for _, wantReplay := range []bool{false, true} {
		name, replayed, err := semel.DoTx(t.Context(), engine, call, func(ctx context.Context, tx pgx.Tx) (name string, err error) {
			err = tx.QueryRow(ctx, `select current_database()`).Scan(&name)
			return name, err
		})
		if err != nil || replayed != wantReplay || name == "" {
			t.Errorf("got %q, %t, %v, want the database's name, %t", name, replayed, err, wantReplay)
		}
	}
}

// charging contains the fragment of docs/choosing.md.
func charging(ctx context.Context, url string, body io.Reader) (*http.Client, *http.Request, error) {
	retrying := &http.Client{Transport: &client.Transport{}}
	r, err := http.NewRequestWithContext(client.WithChildKey(ctx, "charge"), "POST", url, body)
	return retrying, r, err
}

// runClientFragment sends the request from two attempts of one operation, which must have
// the same key.
func runClientFragment(t *testing.T) {
	keys := make(chan string, 2)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get(semelhttp.HeaderKey)
	}))
	defer receiver.Close()
	engine := must(semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure}))
	call := semel.Define("pay", semel.OperationOptions[string]{Policy: semel.AtLeastOnce()}).Call(semel.ScopeOf("ann"), "k", "in")
	for range 2 {
		_, _, err := semel.Do(t.Context(), engine, call, func(ctx context.Context) (string, error) {
			retrying, r, err := charging(ctx, receiver.URL, strings.NewReader("{}"))
			if err != nil {
				return "", err
			}
			resp, err := retrying.Do(r)
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			return "", errors.New("no answer") // this leads to a second attempt
		})
		check.Fails(t, err, "the attempt succeeded")
	}
	close(keys)
	var seen []string
	for key := range keys {
		seen = append(seen, key)
	}
	if len(seen) != 2 || seen[0] != seen[1] || seen[0] == "" {
		t.Errorf("the receiver saw the keys %q, want one twice", seen)
	}
}
