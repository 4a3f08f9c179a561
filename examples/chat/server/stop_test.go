package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/realtest"
)

// TestStopLetsRequestsFinish stops a server while a creation is held. The creation
// is answered, and the restarted server replays the answer.
func TestStopLetsRequestsFinish(t *testing.T) {
	inEachMode(t, func(t *testing.T, f files) {
		b := newBarrier()
		s := serveLocal(t, b.at(f.mode), f.args(time.Minute)...)
		owner := s.signIn(t, "owner")
		asked := creation(owner, "k", "crew")
		b.armed.Store(true)
		held := make(chan answer, 1)
		go func() {
			a, err := s.try(t.Context(), asked)
			if err != nil {
				t.Errorf("the held creation was not answered: %v", err)
			}
			held <- a
		}()
		b.await(t)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			s.stop()
		}()
		s.untilRefused(t)
		close(b.open)
		before := (<-held).want(t, http.StatusCreated, "")
		<-stopped

		s = serveLocal(t, newBarrier().at(f.mode), f.args(time.Minute)...)
		after := s.send(t, asked).want(t, http.StatusCreated, "")
		if after.Body != before.Body || !after.Replayed {
			t.Errorf("told %q before the stop and %q (replayed %v) after it", before.Body, after.Body, after.Replayed)
		}
	})
}

// untilRefused waits until the server accepts no new connections.
func (s *localServer) untilRefused(t *testing.T) {
	t.Helper()
	fresh := newClient(t, s.base)
	realtest.Poll(t, "the server to refuse connections", func() bool {
		_, err := fresh.try(t.Context(), request{method: "GET", path: "/healthz"})
		fresh.http.CloseIdleConnections()
		return err != nil
	})
}
