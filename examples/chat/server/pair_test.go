//go:build unix && !race

package server_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// pair is two servers on the same databases. A killed server can be started again.
type pair struct {
	files

	mu      sync.Mutex // guards the fields below
	servers [2]*process
}

func startPair(t *testing.T, f files) *pair {
	t.Helper()
	p := &pair{files: f}
	p.start(t, 0, 1)
	return p
}

// start starts servers and waits until they serve.
func (p *pair) start(t *testing.T, which ...int) {
	t.Helper()
	var started [2]*process
	for _, i := range which {
		started[i] = launch(t, p.ofServer(i).args(shortLease)...)
	}
	for _, i := range which {
		started[i].serving(t)
		p.mu.Lock()
		p.servers[i] = started[i]
		p.mu.Unlock()
	}
}

func (p *pair) at(i int) *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.servers[i%2]
}

// settle sends a request to one server, or to the other if that does not respond,
// until the answer is final.
func (p *pair) settle(ctx context.Context, first int, q request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i := first; ; i++ {
		a, err := p.at(i).try(ctx, q)
		if err == nil && !a.open() {
			return a, nil
		}
		wait := 20 * time.Millisecond // the server is down
		if after, aerr := strconv.Atoi(a.Header.Get("Retry-After")); aerr == nil {
			wait = time.Duration(after) * time.Second / 10
		}
		if perr := pause(ctx, wait); perr != nil {
			return a, perr
		}
	}
}

// TestTwoProcessesKilledAtEveryPoint sends a hundred requests for one creation to
// two servers on one PostgreSQL or MariaDB, or on two nodes of Galera. At each point of the creation the test kills the
// leader, and then the other server, which has taken over. It starts both again,
// and every request must have the same answer.
func TestTwoProcessesKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	fullOnly(t)
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
				n := rounds(2)
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
	var all crowd
	ask := func(first int) {
		all.send(t, duplicates/2, func(ctx context.Context) (answer, error) { return d.settle(ctx, first, asked) })
	}
	ask(victims[0])
	if d.point == afterCommit { // only the first leader reaches this point
		victims = []int{d.first(t, victims)}
	}
	d.dies(t, victims[0])
	ask(victims[0] + 1)
	for _, v := range victims[1:] {
		d.dies(t, v)
	}
	d.start(t, victims...)
	d.wantOne(t, asked, all.wait())
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
	check.Equal(t, wantSame(t, answers), want, "killed %s: answers without Idempotent-Replayed", d.point)
	by := attempts(t, d.domain, d.owner, asked.key)
	if len(by) != 1 {
		t.Fatalf("killed %s: created by attempts %v, want one", d.point, by)
	}
	if claimed := d.mode == leased && d.point != beforeClaim && !committed; claimed && by[0] < 3 {
		t.Errorf("killed %s: created by attempt %d, want one that has taken over from two", d.point, by[0])
	}
	d.told = append(d.told, answers[0])
	for i, told := range d.told {
		d.at(i).settled(t, creation(d.owner, fmt.Sprintf("key-%d", i), "crew")).wantReplayOf(t, told)
	}
}

// TestTwoProcessesOnAQuorum does what TestTwoProcessesKilledAtEveryPoint does, on a
// PostgreSQL primary whose commits wait for one of two standbys. Then it kills the
// primary under two other servers, which follow the promoted standby.
func TestTwoProcessesOnAQuorum(t *testing.T) { //nolint:tparallel // the second part ends the primary
	t.Parallel()
	fullOnly(t)
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
	told := make([]answer, rounds(3))
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
		check.Equal(t, creations(t, domain, owner, request(i).key), 1, "groups of key %d", i)
	}
}

// TestTenProcessesStartAtOnce starts ten servers on databases that do not exist yet,
// and sends the same creation to each of them.
func TestTenProcessesStartAtOnce(t *testing.T) {
	fullOnly(t)
	onEachDatabase(t, func(t *testing.T, f files) {
		servers := make([]*process, 10)
		for i := range servers {
			servers[i] = launch(t, f.args(time.Minute)...)
		}
		for _, s := range servers {
			s.serving(t)
		}
		owner := servers[0].signIn(t, "owner")
		var all crowd
		for _, s := range servers {
			all.send(t, 1, s.settling(creation(owner, "k", "crew")))
		}
		wantFirst(t, f.mode, all.wait())
		check.Equal(t, creations(t, f.openDomain(t), owner, "k"), 1, "creations")
		for _, s := range servers {
			s.stop(t)
		}
		s := start(t, f.args(time.Minute)...)
		s.send(t, creation(owner, "k", "crew")).want(t, http.StatusCreated, "")
	})
}
