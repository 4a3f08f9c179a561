package semelhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestAnotherRunGetsTheOriginalRequest: after a conflict in the database, the
// handler's changes of its request and its writes are gone.
func TestAnotherRunGetsTheOriginalRequest(t *testing.T) {
	t.Parallel()
	n := new(atomic.Int64)
	engine, err := semel.New[semelTx](&conflictStore{Store: memory.New(memory.Options{})}, semel.Options{Survive: store.NoFailure})
	if err != nil {
		t.Fatal(err)
	}
	protect, err := semelhttp.Atomic(engine, define("op", plain{}), options())
	if err != nil {
		t.Fatal(err)
	}
	srv := serve(t, protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		w.Header().Add("Link", r.URL.Path+" "+r.Header.Get("X-User")+" "+r.PathValue("id"))
		fmt.Fprintf(w, "%s %d %v", body, n.Add(1), err)
		r.URL.Path, r.Host = "/elsewhere", "elsewhere"
		r.Header["X-User"][0] = "eve"
		r.Header.Set("X-More", "more")
		r.SetPathValue("id", "8")
	})))
	got := testRequest{path: "/ops/7"}.do(t, srv)
	wantFirst(t, got, http.StatusOK, `{"n":1} 2 <nil>`)
	if link := got.header["Link"]; fmt.Sprint(link) != "[/ops/7 ann 7]" {
		t.Errorf("the second run sees %q", link)
	}
}

// conflictStore is a store that aborts its first transaction because of a conflict.
type conflictStore struct {
	*memory.Store
	given atomic.Bool
}

func (c *conflictStore) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(context.Context, *memory.Tx, store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	return c.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
		last, err := run(ctx, tx, current)
		if !c.given.Swap(true) {
			return nil, store.ErrConflict
		}
		return last, err
	})
}
