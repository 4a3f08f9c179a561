//go:build unix

package server_test

import (
	"database/sql"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/semelhttp"
	semelclient "github.com/semelgo/semel/semelhttp/client"
	"github.com/semelgo/semel/store"
)

// TestBothKilledOneCharge kills the chat and the payment service at random moments
// while two callers request one boost, and starts them again. The callers retry
// until they have an answer. The table of charges has no unique constraint.
func TestBothKilledOneCharge(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	if !soaking() {
		bothKilled(t, newFiles(t, inline), 8)
		return
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		bothKilled(t, newFiles(t, inline), 100)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		bothKilled(t, newPostgres(t, inline), 100)
	})
}

func bothKilled(t *testing.T, files files, n int) {
	t.Helper()
	f := startServices(t, files)
	for i := range n {
		f.round(t, "boost-"+strconv.Itoa(i))
	}
	f.account(t, n)
	t.Logf("%d boosts; killed while one was under way: the chat %d times, the payment service %d times; %d boosts took more than one attempt",
		n, f.chat.marks, f.payments.marks, f.again)
	if f.chat.marks == 0 || f.payments.marks == 0 || f.again == 0 {
		t.Error("nothing was shown: there were no kills that mattered")
	}
}

// services is a chat and its payment service, each a child process.
type services struct {
	chat, payments *member
	charges        *sql.DB
	domain         chatdb.Querier
	records        semel.Runner
	client         *http.Client
	owner          user
	group          string
	told           map[string]string
	again          int // number of boosts that took more than one attempt
}

// member is a process that is killed and started again at the same address.
type member struct {
	*realtest.Restartable

	marks int // number of kills while a boost was running
}

func newMember(t *testing.T, name string, args ...string) *member {
	t.Helper()
	return &member{Restartable: realtest.StartRestartable(t, func(addr string) *exec.Cmd {
		return child(t, name, append([]string{"-addr", addr}, args...)...)
	})}
}

func startServices(t *testing.T, files files) *services {
	t.Helper()
	file := filepath.Join(t.TempDir(), "payment.db")
	f := &services{told: make(map[string]string)}
	f.payments = newMember(t, "payment", "-db", "sqlite:"+file, "-delay", "250ms")
	f.chat = newMember(t, "chat", append(files.args(shortLease), "-payments", "http://chat@"+f.payments.Addr)...)
	f.charges, f.domain, f.records = openFile(t, file), files.openDomain(t), files.engine(t)

	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	f.client = &http.Client{Transport: &semelclient.Transport{
		Base: base, Budget: patience, MinBackoff: 20 * time.Millisecond, MaxBackoff: 500 * time.Millisecond,
	}}
	c := newClient(t, "http://"+f.chat.Addr)
	f.owner = c.signIn(t, "owner")
	f.group = c.settled(t, creation(f.owner, "crew", "crew")).want(t, http.StatusCreated, "").value(t)["id"].(string)
	return f
}

// round requests one boost from two callers, kills both processes, and requests
// the boost a third time.
func (f *services) round(t *testing.T, key string) {
	t.Helper()
	answers := make(chan answer, 2)
	for range cap(answers) {
		go func() { answers <- f.ask(t, key) }()
	}
	f.killBoth(t, key)
	first, second := <-answers, <-answers
	third := f.ask(t, key)
	for _, a := range []answer{first, second, third} {
		if a.Status != http.StatusCreated || a.Body != first.Body {
			t.Errorf("%s: answered %d %q and %d %q", key, first.Status, first.Body, a.Status, a.Body)
		}
	}
	if !third.Replayed {
		t.Errorf("%s: asked once more, the answer is not a replay", key)
	}
	f.told[key] = first.Body
}

// ask requests a boost until it has an answer.
func (f *services) ask(t *testing.T, key string) answer {
	q := boost(f.owner, key, f.group)
	r, err := http.NewRequestWithContext(t.Context(), q.method, "http://"+f.chat.Addr+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Error(err)
		return answer{}
	}
	r.Header.Set("Authorization", "Bearer "+q.as.Token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(semelhttp.HeaderKey, key)
	resp, err := f.client.Do(r)
	if err != nil {
		t.Errorf("%s: %v", key, err)
		return answer{}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("%s: %v", key, err)
	}
	return answer{
		Status: resp.StatusCode, Header: resp.Header, Body: string(body),
		Replayed: resp.Header.Get(semelhttp.HeaderReplayed) == "true",
	}
}

// killBoth kills both members in random order, at moments when a boost may be
// running. The first one is sometimes started again before the second is killed.
func (f *services) killBoth(t *testing.T, key string) {
	t.Helper()
	one, other := f.chat, f.payments
	if rand.N(2) == 0 {
		one, other = other, one
	}
	overlap := rand.N(2) == 0
	f.kill(t, one, key)
	if !overlap {
		one.Start(t)
	}
	f.kill(t, other, key)
	other.Start(t)
	if overlap {
		one.Start(t)
	}
}

// kill kills a member, and counts the kill if the boost was running just before.
func (f *services) kill(t *testing.T, m *member, key string) {
	t.Helper()
	if err := pause(t.Context(), rand.N(200*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if f.record(t, key).State == store.InProgress {
		m.marks++
	}
	m.Kill()
}

func (f *services) record(t *testing.T, key string) store.Record {
	t.Helper()
	r, _, err := admin.Get(t.Context(), f.records, "boost_group", scopeOf(f.owner), key)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// account compares the answers with the charges and the boosts.
func (f *services) account(t *testing.T, n int) {
	t.Helper()
	charged := f.chargesByID(t)
	if len(charged) != n {
		t.Errorf("charged for %d boosts, want %d", len(charged), n)
	}
	boosts, err := chatdb.BoostsOf(t.Context(), f.domain, f.group)
	if err != nil || len(boosts) != n {
		t.Errorf("%d boosts are noted, %v, want %d", len(boosts), err, n)
	}
	for _, b := range boosts {
		if charged[b.ChargeID] != 1 {
			t.Errorf("boost %s was charged for %d times", b.ChargeID, charged[b.ChargeID])
		}
	}
	for key, body := range f.told {
		id := answer{Body: body}.value(t)["charge_id"].(string)
		if charged[id] != 1 {
			t.Errorf("%s: told of the charge %s, which was made %d times", key, id, charged[id])
		}
		if f.record(t, key).Attempt > 1 {
			f.again++
		}
	}
}

// chargesByID returns, for each charge, the number of charges with its reference.
func (f *services) chargesByID(t *testing.T) map[string]int {
	t.Helper()
	rows, err := f.charges.QueryContext(t.Context(), `
select id, (select count(*) from charges other where other.reference = charges.reference) from charges`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	charged := make(map[string]int)
	for rows.Next() {
		var (
			id string
			n  int
		)
		if err := rows.Scan(&id, &n); err != nil {
			t.Fatal(err)
		}
		charged[id] = n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return charged
}
