//go:build unix

package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/chatdb"
)

// TestTwoProcessesKilledAtEveryPoint sends a hundred requests for one creation to
// two servers on one PostgreSQL or MariaDB, or on two nodes of Galera. At each point of the creation the test kills the
// leader, and then the other server, which has taken over. It starts both again,
// and every request must have the same answer.
func TestTwoProcessesKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	for name, open := range map[string]func(t *testing.T, mode string) files{
		"postgres": newPostgres, "mariadb": newMariaDB, "galera": newGalera,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killPairsAtEveryPoint(t, open)
		})
	}
}

// killPairsAtEveryPoint runs the rounds of each mode and point on databases of its own.
func killPairsAtEveryPoint(t *testing.T, newFiles func(t *testing.T, mode string) files) {
	t.Helper()
	for _, mode := range []string{inline, leased} {
		for _, point := range []string{beforeClaim, afterClaim, inHandler, beforeCommit, afterCommit, beforeAnswer} {
			t.Run(mode+"/"+point, func(t *testing.T) {
				t.Parallel()
				d := &pairCrash{pair: startPair(t, newFiles(t, mode)), point: point}
				d.owner, d.domain = d.at(0).signIn(t, "owner"), d.openDomain(t)
				n := rounds(5)
				for i := range n {
					d.round(t, i)
				}
				t.Logf("%s, %s: %d times, %d kills, each time exactly one group", mode, point, n, d.kills)
			})
		}
	}
}

// pairCrash tests one point in one mode: both servers are killed there, one after the
// other.
type pairCrash struct {
	*pair

	point  string
	domain chatdb.Querier
	owner  user
	kills  int
	told   []answer // the answer to the key of each round
}

// duplicates is the number of requests for one creation.
const duplicates = 100

func (d *pairCrash) round(t *testing.T, i int) {
	t.Helper()
	asked := creation(d.owner, fmt.Sprintf("key-%d", i), "crew")
	victims := []int{i % 2, (i + 1) % 2}
	for _, v := range victims {
		d.at(v).arm(t, "kill", d.point)
	}
	answers := make([]answer, duplicates)
	var all sync.WaitGroup
	ask := func(from, to, first int) {
		for n := from; n < to; n++ {
			all.Go(func() {
				a, err := d.settle(t.Context(), first, asked)
				if err != nil {
					t.Errorf("request %d: %v", n, err)
				}
				answers[n] = a
			})
		}
	}
	ask(0, duplicates/2, victims[0])
	if d.point == afterCommit { // only the first leader reaches this point
		victims = []int{d.first(t, victims)}
	}
	d.dies(t, victims[0])
	ask(duplicates/2, duplicates, victims[0]+1)
	for _, v := range victims[1:] {
		d.dies(t, v)
	}
	d.start(t, victims...)
	all.Wait()
	d.wantOne(t, asked, answers)
}

// first waits for the first server that reaches the point: usually the leader, or
// the server that took over if the leader has lost its lease.
func (d *pairCrash) first(t *testing.T, servers []int) int {
	t.Helper()
	one, other := d.at(servers[0]), d.at(servers[1])
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		changed := [2]<-chan struct{}{one.Changed(), other.Changed()}
		for _, i := range servers {
			if d.at(i).Count("reached "+d.point, "") > 0 {
				return i
			}
		}
		select {
		case <-changed[0]:
		case <-changed[1]:
		case <-limit.C:
			t.Fatalf("no server has reached the point %q", d.point)
		}
	}
}

// dies waits until a server has been killed at the point.
func (d *pairCrash) dies(t *testing.T, i int) {
	t.Helper()
	d.at(i).killedAt(t, d.point)
	d.kills++
}

// wantOne checks that all answers show the same group, that no other group exists,
// and that the answers of earlier rounds are unchanged.
func (d *pairCrash) wantOne(t *testing.T, asked request, answers []answer) {
	t.Helper()
	committed := slices.Contains([]string{afterCommit, beforeAnswer}, d.point)
	want := 1
	if committed {
		want = 0 // the first answer was lost
	}
	if first := wantSame(t, answers); first != want {
		t.Errorf("killed %s: %d answers without Idempotent-Replayed, want %d", d.point, first, want)
	}
	by := attempts(t, d.domain, d.owner, asked.key)
	if len(by) != 1 {
		t.Fatalf("killed %s: created by attempts %v, want one", d.point, by)
	}
	if claimed := d.mode == leased && d.point != beforeClaim && !committed; claimed && by[0] < 3 {
		t.Errorf("killed %s: created by attempt %d, want one that has taken over from two", d.point, by[0])
	}
	d.told = append(d.told, answers[0])
	for i, told := range d.told {
		again := creation(d.owner, fmt.Sprintf("key-%d", i), "crew")
		a := d.at(i).settled(t, again).want(t, http.StatusCreated, "")
		if a.Body != told.Body || !a.Replayed {
			t.Errorf("key %d was answered %q, and now %q (replayed %v)", i, told.Body, a.Body, a.Replayed)
		}
	}
}
