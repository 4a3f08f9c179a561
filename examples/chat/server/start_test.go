//go:build unix

package server_test

import (
	"net/http"
	"sync"
	"testing"
	"time"
)

// TestTenProcessesStartAtOnce starts ten servers on databases that do not exist yet,
// and sends the same creation to each of them.
func TestTenProcessesStartAtOnce(t *testing.T) {
	inEachMode(t, func(t *testing.T, f files) {
		if testing.Short() {
			t.Skip("make test-full runs it")
		}
		servers := make([]*process, 10)
		for i := range servers {
			servers[i] = launch(t, f.args(time.Minute)...)
		}
		for _, s := range servers {
			s.serving(t)
		}
		owner := servers[0].signIn(t, "owner")
		var all sync.WaitGroup
		answers := make([]answer, len(servers))
		for i, s := range servers {
			all.Go(func() {
				a, err := s.settle(t.Context(), creation(owner, "k", "crew"))
				if err != nil {
					t.Errorf("server %d: %v", i, err)
				}
				answers[i] = a
			})
		}
		all.Wait()
		wantFirst(t, f.mode, wantSame(t, answers))
		if n := creations(t, f.openDomain(t), owner, "k"); n != 1 {
			t.Errorf("%d creations, want 1", n)
		}
		for _, s := range servers {
			s.stop(t)
		}
		s := start(t, f.args(time.Minute)...)
		s.send(t, creation(owner, "k", "crew")).want(t, http.StatusCreated, "")
	})
}
