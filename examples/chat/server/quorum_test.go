//go:build unix

package server_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/semelgo/semel/internal/realtest"
)

// TestTwoProcessesOnAQuorum does what TestTwoProcessesKilledAtEveryPoint does, on a
// PostgreSQL primary whose commits wait for one of two standbys. Then it kills the
// primary under two other servers, which follow the promoted standby.
func TestTwoProcessesOnAQuorum(t *testing.T) { //nolint:tparallel // the second part ends the primary
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Attr("engine", "postgres")
	q := realtest.PostgresQuorum(t)
	newFiles := func(t *testing.T, mode string) files {
		t.Helper()
		return files{mode: mode, postgres: q.URL(t, q.Primary().Database(t)), quorum: true}
	}
	t.Run("points", func(t *testing.T) { killPairsAtEveryPoint(t, newFiles) })
	t.Run("failover", func(t *testing.T) { failOver(t, q, startPair(t, newFiles(t, inline))) })
}

// failOver kills the primary after several creations, and checks that the servers answer
// as before, and work on.
func failOver(t *testing.T, q *realtest.Quorum, servers *pair) {
	t.Helper()
	owner := servers.at(0).signIn(t, "owner")
	request := func(i int) request { return creation(owner, fmt.Sprintf("key-%d", i), "crew") }
	told := make([]answer, rounds(5))
	for i := range told {
		told[i] = servers.at(i).settled(t, request(i)).want(t, http.StatusCreated, "")
	}
	q.Failover(t)
	domain := servers.openDomain(t)
	for i := range 2 * len(told) {
		a := servers.at(i+1).settled(t, request(i)).want(t, http.StatusCreated, "")
		if i < len(told) && (!a.Replayed || a.Body != told[i].Body) {
			t.Errorf("key %d was answered %q, and after the failover %q (replayed %v)", i, told[i].Body, a.Body, a.Replayed)
		}
		if n := creations(t, domain, owner, request(i).key); n != 1 {
			t.Errorf("key %d has created %d groups, want 1", i, n)
		}
	}
}
