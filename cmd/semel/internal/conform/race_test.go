package conform_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/semelgo/semel/cmd/semel/internal/conform"
)

// naive is the commonest mistake: it looks for the key, runs the handler, which reads
// the body and takes no time, and then stores the answer. Each step is safe by itself.
type naive struct {
	mu      sync.Mutex
	answers map[string]string
	orders  map[string]int
}

func (n *naive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		n.mu.Lock()
		defer n.mu.Unlock()
		_ = json.NewEncoder(w).Encode(n.orders[r.URL.Query().Get("name")])
		return
	}
	key := r.Header.Get("Idempotency-Key")
	n.mu.Lock()
	answer, found := n.answers[key]
	n.mu.Unlock()
	if !found {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer = n.order(string(text))
		n.mu.Lock()
		n.answers[key] = answer
		n.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, answer)
}

// order is the handler.
func (n *naive) order(text string) string {
	name, _, _ := strings.Cut(text, " ")
	n.mu.Lock()
	defer n.mu.Unlock()
	n.orders[name]++
	return fmt.Sprintf(`{"id":%d}`, n.orders[name])
}

// TestTheRaceFindsCheckThenAct in each of ten runs, and says how often the handler ran.
func TestTheRaceFindsCheckThenAct(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&naive{answers: map[string]string{}, orders: map[string]int{}})
	t.Cleanup(server.Close)
	p := conform.DefaultProfile()
	p.Suite.Endpoint = &conform.Endpoint{URL: "/orders", Body: "{{op}} {{n}}", Counter: conform.Counter{URL: "/orders?name={{op}}"}}
	found := regexp.MustCompile(`^the handler ran \d+ times for one key, in \d+ of 20 rounds`)
	for i := range 10 {
		r := hold(t, server.URL, &p, conform.Options{Only: []string{"30"}, Storm: 20}).Results[0]
		if r.Verdict != conform.Fail || !found.MatchString(r.Detail) {
			t.Errorf("run %d: %s: %q, want that the handler ran more than once", i+1, r.Verdict, r.Detail)
		}
	}
}
