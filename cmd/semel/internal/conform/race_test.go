package conform_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/semelgo/semel/cmd/semel/internal/conform"
	"github.com/semelgo/semel/internal/check"
)

// naive makes the most common mistake: it looks up the key, runs the handler,
// and then stores the answer. Each step alone is safe for concurrent use.
type naive struct {
	bodyFirst bool     // reads the body before it looks up the key
	disk      *os.File // the handler writes the order to this file, unless it is nil
	mu        sync.Mutex
	answers   map[string]string
	orders    map[string]int
}

func (n *naive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		n.mu.Lock()
		defer n.mu.Unlock()
		_ = json.NewEncoder(w).Encode(n.orders[r.URL.Query().Get("name")])
		return
	}
	key := r.Header.Get("Idempotency-Key")
	var text string
	if n.bodyFirst {
		text = read(r)
	}
	n.mu.Lock()
	answer, found := n.answers[key]
	n.mu.Unlock()
	if !found {
		if !n.bodyFirst {
			text = read(r)
		}
		if n.disk != nil {
			_, _ = n.disk.WriteString(text + "\n")
			_ = n.disk.Sync()
		}
		answer = n.order(text)
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

func read(r *http.Request) string {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return "" // an order without a name, which is not counted
	}
	return string(text)
}

// TestRaceFindsCheckThenAct in each of ten runs, and reports how often the
// handler ran. A server that looks up the key before it has read the body is
// found even if its handler is fast. A server that reads the body first is
// found if its handler writes to a disk.
func TestRaceFindsCheckThenAct(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	for _, count := range []string{"/orders?name={{op}}", ""} {
		t.Run("key first"+count, func(t *testing.T) {
			t.Parallel()
			mustFindNaive(t, &naive{}, count)
		})
		t.Run("body first"+count, func(t *testing.T) {
			t.Parallel()
			disk := check.Must(os.Create(filepath.Join(t.TempDir(), "orders")))(t)
			t.Cleanup(func() { disk.Close() })
			mustFindNaive(t, &naive{bodyFirst: true, disk: disk}, count)
		})
	}
}

// TestRaceFindsAFastHandler: a server that reads the body first and has a fast
// handler is found if two processors are free. A loaded machine runs the
// requests one after the other.
func TestRaceFindsAFastHandler(t *testing.T) {
	if os.Getenv("SEMEL_SOAK") == "" {
		t.Skip("it needs two free processors: set SEMEL_SOAK=1")
	}
	mustFindNaive(t, &naive{bodyFirst: true}, "/orders?name={{op}}")
	mustFindNaive(t, &naive{bodyFirst: true}, "")
}

// mustFindNaive runs the race against n ten times.
func mustFindNaive(t *testing.T, n *naive, count string) {
	t.Helper()
	n.answers, n.orders = map[string]string{}, map[string]int{}
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	e := check.Must(conform.ParseEndpoint("POST /orders", "{{op}} {{n}}", count))(t)
	p := conform.UndeclaredProfile()
	p.Suite.Endpoint = e
	found := regexp.MustCompile(`^the handler ran \d+ times for one key, in`)
	for i := range 10 {
		r := hold(t, server.URL, &p, conform.Options{Only: []string{"30"}, RaceSize: 20}).Results[0]
		if r.Verdict != conform.Fail || !found.MatchString(r.Detail) {
			t.Errorf("run %d: %s: %q, want more than one run of the handler", i+1, r.Verdict, r.Detail)
		}
		if len(r.Exchanges) < 2 || !strings.Contains(r.Exchanges[0].Request, "curl -i -X POST") {
			t.Errorf("run %d shows %v, want at least two requests as curl commands", i+1, r.Exchanges)
		}
	}
}
