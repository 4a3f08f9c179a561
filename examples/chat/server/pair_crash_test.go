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

// TestTwoProcessesKilledAtEveryPoint lets a hundred requests for one creation
// meet two servers on one PostgreSQL. At each point of its path the one that is
// creating is killed, and then the other one, which has taken over. Both are
// started again, and everybody gets the same answer.
func TestTwoProcessesKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{inline, leased} {
		for _, point := range []string{beforeClaim, afterClaim, inHandler, beforeCommit, afterCommit, beforeAnswer} {
			t.Run(mode+"/"+point, func(t *testing.T) {
				t.Parallel()
				d := &duel{pair: startPair(t, newPostgres(t, mode)), point: point}
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

// duel is one point in one mode, at which both of a pair are killed in turn.
type duel struct {
	*pair

	point  string
	domain chatdb.Querier
	owner  user
	kills  int
	told   []answer // what each round's key is answered with
}

// duplicates is how many requests ask for one creation.
const duplicates = 100

func (d *duel) round(t *testing.T, i int) {
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
	if d.point == afterCommit { // only one of them comes to it
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

// first waits for the first of the servers that comes to the point: mostly the one
// that was asked, and where that has lost its lease, the one that has taken over.
func (d *duel) first(t *testing.T, servers []int) int {
	t.Helper()
	for limit := time.Now().Add(patience); time.Now().Before(limit); {
		for _, i := range servers {
			if d.at(i).said("reached "+d.point, "") > 0 {
				return i
			}
		}
		if err := pause(t.Context(), 5*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("nobody has been at the point %q", d.point)
	return 0
}

// dies sees a server come to the point and end there.
func (d *duel) dies(t *testing.T, i int) {
	t.Helper()
	d.at(i).reached(t, d.point)
	d.at(i).killed(t)
	d.kills++
}

// wantOne sees that everybody was told of the same group, that there is no other
// one, and that earlier answers stand.
func (d *duel) wantOne(t *testing.T, asked request, answers []answer) {
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
