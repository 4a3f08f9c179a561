package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
)

// fakePayments is a fake payment service. The test sets its responses and reads the
// requests that it received.
type fakePayments struct {
	url string

	mu     sync.Mutex // guards the fields below
	poor   map[string]bool
	broken []http.HandlerFunc // handle the next requests instead
	asked  []charged
}

// charged is a request to charge that was received.
type charged struct {
	Key, Merchant, Reference, Currency string
	Amount                             int64
}

func newFakePayments(t *testing.T) *fakePayments {
	t.Helper()
	c := &fakePayments{poor: make(map[string]bool)}
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	c.url = strings.Replace(srv.URL, "http://", "http://chat@", 1)
	return c
}

// declines makes the service decline every charge for a group.
func (c *fakePayments) declines(group string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.poor[group] = true
}

// breaks sets handlers for the next requests.
func (c *fakePayments) breaks(instead ...http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = instead
}

func (c *fakePayments) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := charged{Key: r.Header.Get("Idempotency-Key")}
	q.Merchant, _, _ = r.BasicAuth()
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.asked = append(c.asked, q)
	group, _, _ := strings.Cut(q.Reference, " ")
	switch {
	case len(c.broken) > 0:
		instead := c.broken[0]
		c.broken = c.broken[1:]
		instead(w, r)
	case c.poor[group]:
		w.WriteHeader(http.StatusPaymentRequired)
	default:
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"id":"charge of %s"}`, strings.Trim(q.Key, `"`))
	}
}

// came lists the received requests.
func (c *fakePayments) came() []charged {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]charged(nil), c.asked...)
}

// boost is the request to boost a group.
func boost(as user, key, group string) request {
	return request{method: "POST", path: "/v1/groups/" + group + "/boosts", as: as, key: key, body: `{}`}
}

// boostsOf lists the boosts of a group.
func (c *client) boostsOf(t *testing.T, u user, group string) []map[string]any {
	t.Helper()
	return read[struct{ Boosts []map[string]any }](t, c, u, "/v1/groups/"+group+"/boosts").Boosts
}

// TestABoostIsPaidForOnce: a boost is charged once per key; another key is another
// boost. A declined charge is the payment service's own answer, so it is final.
func TestABoostIsPaidForOnce(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	first := w.send(t, boost(w.ann, "k", w.group)).want(t, http.StatusCreated, "")
	check.Equal(t, first.Replayed, false, "the first answer is a replay")
	w.send(t, boost(w.ann, "k", w.group)).wantReplayOf(t, first)
	w.send(t, boost(w.ann, "k2", w.group)).want(t, http.StatusCreated, "")
	came := w.fakePayments.came()
	if len(came) != 2 || came[0].Key == came[1].Key || came[0].Reference == came[1].Reference {
		t.Fatalf("asked for %+v, want two charges", came)
	}
	if q := came[0]; q.Merchant != "chat" || q.Amount != 500 || q.Currency != "EUR" || strings.Contains(q.Key, `"k"`) {
		t.Errorf("asked for %+v, want 5 EUR for the chat, under a key of its own", q)
	}
	if noted := w.boostsOf(t, w.ann, w.group); len(noted) != 2 || noted[0]["charge_id"] != first.value(t)["charge_id"] {
		t.Errorf("noted %v", noted)
	}

	poor := w.newGroup(t, w.ann, "poor")
	w.fakePayments.declines(poor)
	declined := w.send(t, boost(w.ann, "k3", poor)).want(t, http.StatusPaymentRequired, "payment_declined")
	check.Equal(t, declined.Replayed, false, "the first answer is a replay")
	w.send(t, boost(w.ann, "k3", poor)).wantReplayOf(t, declined)
	check.Equal(t, len(w.fakePayments.came()), 3, "charges that were asked for")
	check.Equal(t, len(w.boostsOf(t, w.ann, poor)), 0, "boosts of the declined group")
}

// TestABoostIsForMembers: only members can boost a group, and only on a server with
// a payment service. A rejected request does not claim its key.
func TestABoostIsForMembers(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.send(t, boost(w.bob, "k", w.group)).want(t, http.StatusForbidden, "not_a_member")
	w.send(t, boost(w.ann, "k", "grp_none")).want(t, http.StatusNotFound, "not_found")
	odd := boost(w.ann, "k", w.group)
	odd.body = `{"amount":1}`
	w.send(t, odd).want(t, http.StatusBadRequest, "invalid")
	check.Equal(t, len(w.fakePayments.came()), 0, "charges that were asked for")
	if a := w.send(t, boost(w.ann, "k", w.group)).want(t, http.StatusCreated, ""); a.Replayed {
		t.Error("the key was used up")
	}

	s := serveLocal(t, server.Hooks{}, newFiles(t, inline).args(time.Minute)...)
	u := s.signIn(t, "ann")
	group := s.newGroup(t, u, "crew")
	s.send(t, boost(u, "b", group)).want(t, http.StatusNotImplemented, "no_payments")
}

// TestUnclearPaymentIsRetried: after an unclear response the HTTP client or
// the next attempt sends the same charge again.
func TestUnclearPaymentIsRetried(t *testing.T) {
	t.Parallel()
	w, noted := newFixture(t), 0
	answers := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, broken := range map[string]struct {
		answer   http.HandlerFunc
		attempts int // that the chat needs
	}{
		"unavailable":  {answers(http.StatusServiceUnavailable, ""), 1},
		"cut off":      {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 1},
		"broken":       {answers(http.StatusInternalServerError, ""), 2},
		"refused":      {answers(http.StatusUnauthorized, ""), 2},
		"no charge":    {answers(http.StatusCreated, `{}`), 2},
		"not readable": {answers(http.StatusCreated, `<html>`), 2},
	} {
		asked, before := boost(w.ann, name, w.group), w.fakePayments.came()
		w.fakePayments.breaks(broken.answer)
		first := w.send(t, asked)
		if broken.attempts == 2 {
			first.want(t, http.StatusServiceUnavailable, "outcome_unknown")
			first = w.settled(t, asked)
		}
		first.want(t, http.StatusCreated, "")
		came := w.fakePayments.came()[len(before):]
		if len(came) != 2 || came[0] != came[1] {
			t.Errorf("%s: asked for %+v, want the same charge twice", name, came)
		}
		noted++
		check.Equal(t, len(w.boostsOf(t, w.ann, w.group)), noted, "%s: boosts that are noted", name)
	}
}
