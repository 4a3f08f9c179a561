package conform_test

import (
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel/cmd/semel/internal/conform"
)

// fakeServer implements the fixture contract without Semel: a map and a lock.
// Without flaws it is correct; each flaw makes it wrong in one way.
type fakeServer struct {
	name    string
	flaws   map[flaw]bool
	profile conform.Profile

	mu      sync.Mutex // guards the fields below
	records map[string]*record
	effects map[string]int
	gates   map[string]*gate
	acted   map[string]bool
	denied  map[string]bool
	ahead   time.Duration
	down    bool
	life    chan struct{} // closed by a crash
	seen    map[string]bool

	cache sync.Mutex // held while the counter is read
}

type record struct {
	fingerprint string
	running     bool
	life        chan struct{}
	ended       chan struct{} // closed after the attempt
	at          time.Duration
	answer      stored
	unmarked    bool // do not mark this replay
}

type stored struct {
	status int
	header http.Header
	body   []byte
}

type gate struct {
	opened chan struct{}
	held   int
}

// newFakeServer starts a server with the flaws and returns its address.
func newFakeServer(t *testing.T, flaws ...flaw) (string, *conform.Profile) {
	t.Helper()
	srv, p := unstarted(t, flaws...)
	srv.Start()
	return srv.URL, p
}

// unstarted returns a server that has not been started. It ends with the test.
func unstarted(t *testing.T, flaws ...flaw) (*httptest.Server, *conform.Profile) {
	t.Helper()
	s := &fakeServer{
		name: rand.Text(), flaws: make(map[flaw]bool), records: make(map[string]*record), effects: make(map[string]int),
		gates: make(map[string]*gate), acted: make(map[string]bool), denied: make(map[string]bool), life: make(chan struct{}),
	}
	for _, f := range flaws {
		s.flaws[f] = true
	}
	if s.flaws[speaksStripe] {
		s.flaws[rawKeys], s.flaws[sharesRoutes], s.flaws[storesServerErrors] = true, true, true
	}
	s.profile = s.says()
	srv := httptest.NewUnstartedServer(s.front(s.routes()))
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(srv.Close)
	p := s.says()
	return srv, &p
}

func (s *fakeServer) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ops", s.serve)
	mux.HandleFunc("PATCH /ops/{id}", s.serve)
	mux.HandleFunc("GET /problems/{code}", func(w http.ResponseWriter, r *http.Request) {
		if s.flaws[deadLink] && r.PathValue("code") == "in_progress" {
			http.NotFound(w, r)
		}
	})
	mux.HandleFunc("GET /effects/{op}", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		report(w, map[string]int{"count": s.effects[r.PathValue("op")]})
	})
	mux.HandleFunc("GET /.well-known/idempotency", s.publish)
	mux.HandleFunc("POST /barrier/{op}", s.turnGate)
	mux.HandleFunc("POST /{power}", s.power)
	mux.HandleFunc("POST /permit/{op}", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.denied[r.PathValue("op")] = !orders(r).Allowed
		report(w, struct{}{})
	})
	return mux
}

// order is the body of the contract's control requests.
type order struct {
	Hold    *bool
	Advance string
	Up      bool
	Allowed bool
}

func orders(r *http.Request) (o order) {
	_ = json.NewDecoder(r.Body).Decode(&o)
	return o
}

func (s *fakeServer) power(w http.ResponseWriter, r *http.Request) {
	o := orders(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.PathValue("power") {
	case "clock":
		d, err := time.ParseDuration(o.Advance)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.ahead += d
	case "store":
		s.down = !o.Up
	case "crash":
		close(s.life)
		s.life = make(chan struct{})
		clear(s.gates)
		if s.flaws[forgetsAtRestart] {
			clear(s.records)
		}
	default:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	report(w, struct{}{})
}

func (s *fakeServer) turnGate(w http.ResponseWriter, r *http.Request) {
	hold, op := orders(r).Hold, r.PathValue("op")
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gates[op]
	switch {
	case hold == nil:
	case *hold && g == nil:
		g = &gate{opened: make(chan struct{})}
		s.gates[op] = g
	case !*hold && g != nil:
		close(g.opened)
		delete(s.gates, op)
	}
	held := 0
	if g != nil {
		held = g.held
	}
	report(w, map[string]int{"held": held})
}

func report(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
