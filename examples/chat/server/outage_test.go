package server_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// TestDatabaseIsLostUnderLoad stops and kills the database while clients create
// groups, and starts it again. Every group that a client was told of exists, no
// group exists that a client was told has failed, and no other answer is final.
func TestDatabaseIsLostUnderLoad(t *testing.T) {
	t.Parallel()
	fullOnly(t)
	for _, mode := range []string{inline, leased} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			db := realtest.OwnPostgres(t, "synchronous_commit=on")
			f := files{mode: mode, postgres: db.Database(t)}
			l := &creators{open: make(chan struct{})}
			s := serveLocal(t, server.Hooks{Create: l.caughtIn}, f.args(shortOutageLease)...)
			l.client, l.owner = s.client, s.signIn(t, "owner")
			stop := l.start(t)
			for i := range rounds(2) {
				l.untilAnswered(t, http.StatusCreated)
				<-l.open
				if i%2 == 0 {
					db.Kill()
				} else {
					db.Stop(realtest.Immediate)
				}
				l.untilAnswered(t, http.StatusServiceUnavailable)
				s.send(t, request{method: "GET", path: "/readyz"}).want(t, http.StatusServiceUnavailable, "unavailable")
				s.send(t, request{method: "GET", path: "/healthz"}).want(t, http.StatusOK, "")
				db.Start(t)
			}
			l.untilAnswered(t, http.StatusCreated)
			stop()
			l.wantTruth(t, f.openDomain(t))
		})
	}
}

// shortOutageLease is how long a creation that an outage interrupted blocks its
// key.
const shortOutageLease = time.Second

// creators are many clients that create groups.
type creators struct {
	*client

	owner  user
	caught atomic.Int64  // number of interrupted transactions of creations
	open   chan struct{} // receives a value from a creation while its transaction is open

	mu   sync.Mutex // guards what follows
	told map[string][]answer
	seen map[int]*atomic.Int64 // number of responses by status; the map itself does not change
}

// caughtIn counts the creations that an outage interrupts. It delays each creation
// a little, and one until the outage if the test waits for it.
func (l *creators) caughtIn(next server.CreateFunc) server.CreateFunc {
	return func(ctx context.Context, tx chatdb.Tx, n chatdb.NewGroup) (chatdb.Group, error) {
		g, err := next(ctx, tx, n)
		if err == nil {
			seconds := 0.02
			select {
			case l.open <- struct{}{}:
				seconds = patience.Seconds()
			default:
			}
			err = tx.Exec(ctx, fmt.Sprintf(`do $$ begin perform pg_sleep(%f); end $$`, seconds))
		}
		if err != nil {
			l.caught.Add(1)
		}
		return g, err
	}
}

// start runs the clients until stop is called. stop returns when each client has a
// final answer or has given up.
func (l *creators) start(t *testing.T) (stop func()) {
	t.Helper()
	l.told = make(map[string][]answer)
	l.seen = map[int]*atomic.Int64{http.StatusCreated: {}, http.StatusServiceUnavailable: {}}
	var all sync.WaitGroup
	done := make(chan struct{})
	for c := range 8 {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
					l.ask(t, fmt.Sprintf("%s-%d-%d", []string{once, twice}[i%2], c, i))
				}
			}
		})
	}
	return func() {
		close(done)
		all.Wait()
	}
}

// The kinds of clients. A key begins with the kind of its client.
const (
	twice = "twice" // two clients that retry at the same time until they have an answer
	once  = "once"  // sends one request and gives up
)

func (l *creators) ask(t *testing.T, key string) {
	if strings.HasPrefix(key, once) {
		l.try(t, key)
		return
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { l.settle(t, key) })
	}
	both.Wait()
}

// settle requests one creation until the answer is final.
func (l *creators) settle(t *testing.T, key string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var a answer
	err := realtest.Retry(ctx, func() bool {
		a = l.try(t, key)
		return !a.open()
	})
	if err != nil {
		t.Errorf("%s: still %d %s", key, a.Status, a.code())
	}
}

// try requests one creation once, and stores the answer.
func (l *creators) try(t *testing.T, key string) answer {
	a, err := l.client.try(context.WithoutCancel(t.Context()), creation(l.owner, key, "crew"))
	if err != nil {
		t.Errorf("%s: %v", key, err) // the server itself never stops
		return a
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told[key] = append(l.told[key], a)
	if n, ok := l.seen[a.Status]; ok {
		n.Add(1)
	}
	return a
}

// untilAnswered waits until the server has sent some more responses of the status.
func (l *creators) untilAnswered(t *testing.T, status int) {
	t.Helper()
	want := l.seen[status].Load() + 16
	realtest.Poll(t, fmt.Sprintf("more responses with status %d", status), func() bool { return l.seen[status].Load() >= want })
}

// wantTruth compares the answers with the chat's tables.
func (l *creators) wantTruth(t *testing.T, domain chatdb.Querier) {
	t.Helper()
	seen := make(map[string]int)
	for key, told := range l.told {
		n := creations(t, domain, l.owner, key)
		for _, a := range told {
			seen[strconv.Itoa(a.Status)+" "+a.code()]++
		}
		last := told[len(told)-1]
		switch kind, _, _ := strings.Cut(key, "-"); {
		case slices.ContainsFunc(told, func(a answer) bool { return a.Status == http.StatusCreated }):
			created := slices.DeleteFunc(slices.Clone(told), func(a answer) bool { return a.Status != http.StatusCreated })
			wantSame(t, append(created, l.settled(t, creation(l.owner, key, "crew"))))
			check.Equal(t, n, 1, "%s was told to be done: creations", key)
		case kind == once && last.code() == "unavailable":
			check.Equal(t, n, 0, "%s was told that nothing was run: creations", key)
		case kind == once && last.code() == "outcome_unknown":
			again := l.settled(t, creation(l.owner, key, "crew")).want(t, http.StatusCreated, "")
			if n > 1 || again.Replayed != (n == 1) {
				t.Errorf("%s was not known: %d creations, and then replayed %v", key, n, again.Replayed)
			}
		default:
			t.Errorf("%s was left with %d %s", key, last.Status, last.code())
		}
	}
	t.Logf("%d keys, %d broken off, told: %v", len(l.told), l.caught.Load(), seen)
	if l.caught.Load() == 0 || seen["503 unavailable"] == 0 {
		t.Error("no outage has broken off a creation: nothing was shown")
	}
}
