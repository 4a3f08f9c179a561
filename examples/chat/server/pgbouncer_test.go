package server_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/realtest"
)

// TestBehindPgBouncer sends duplicates to two servers behind a pooler that gives
// every transaction another connection.
func TestBehindPgBouncer(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{inline, leased} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newPostgres(t, mode)
			f.postgres = inExecMode(realtest.PgBouncer(t, f.postgres))
			servers := [2]*localServer{}
			for i := range servers {
				servers[i] = serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
			}
			owner := servers[0].signIn(t, "owner")
			other := servers[1].signIn(t, "other")
			answers := make([]answer, 40)
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() {
					a, err := servers[i%2].settle(t.Context(), creation(owner, "k", "crew", other.ID))
					if err != nil {
						t.Errorf("request %d: %v", i, err)
					}
					answers[i] = a
				})
			}
			all.Wait()
			wantFirst(t, mode, wantSame(t, answers))
			if n := creations(t, f.openDomain(t), owner, "k"); n != 1 {
				t.Errorf("%d creations, want 1", n)
			}
			path := answers[0].Header.Get("Location") + "/messages"
			said := request{method: "POST", path: path, as: other, key: "m", body: `{"text":"hello"}`}
			first := servers[0].send(t, said).want(t, http.StatusCreated, "")
			if again := servers[1].send(t, said); again.Body != first.Body || !again.Replayed {
				t.Errorf("a message was answered %q, then %q (replayed %v)", first.Body, again.Body, again.Replayed)
			}
			servers[0].send(t, creation(owner, "f", "crew", 99)).want(t, http.StatusUnprocessableEntity, "unknown_member")
		})
	}
}

// inExecMode turns prepared statements off, as the README says.
func inExecMode(url string) string {
	joint := "?"
	if strings.Contains(url, "?") {
		joint = "&"
	}
	return url + joint + "default_query_exec_mode=exec"
}
