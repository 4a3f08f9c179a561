package console_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/console"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// input is the input of the tests' operations.
type input struct {
	Card string `json:"card"`
}

// rig is a console over a store, mounted below /console/.
type rig struct {
	engine semel.Runner
	server *httptest.Server
	charge *semel.Operation[input] // its key becomes InDoubt when its function fails
	mail   *semel.Operation[input] // a task, a dead letter after one error
	wire   *semel.Operation[input] // as charge, with a probe
	sizes  *console.BatchSizes

	mu     sync.Mutex
	actor  console.Actor
	events []console.Event
	refuse error     // of Audit
	probe  probeFunc // of wire
}

type probeFunc func(ctx context.Context, key string) (result any, found bool, err error)

// setProbe changes the probe of the operation wire.
func (g *rig) setProbe(f probeFunc) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probe = f
}

var errBank = errors.New("bank <script>alert(1)</script> does not answer")

// newRig serves a console for an actor with all rights.
func newRig(t *testing.T, s store.Store) *rig {
	t.Helper()
	g := &rig{
		charge: semel.Define("charge", semel.OperationOptions[input]{}),
		mail: semel.Define("mail", semel.OperationOptions[input]{
			Policy: semel.AtLeastOnce(), Retry: &semel.Retry{MaxErrors: 1},
		}),
		actor: console.Actor{Name: "ann", Reveal: true, Write: true},
		sizes: &console.BatchSizes{},
		probe: func(context.Context, string) (any, bool, error) { return nil, false, nil },
	}
	g.wire = semel.Define("wire", semel.OperationOptions[input]{
		Policy: semel.Heal(func(ctx context.Context, _ semel.Scope, key string) (any, bool, error) {
			g.mu.Lock()
			probe := g.probe
			g.mu.Unlock()
			return probe(ctx, key)
		}),
	})
	g.engine = check.Must(semel.NewRunner(s, semel.Options{
		Survive: store.NoFailure, RecordTimeout: time.Minute, Operations: []semel.Declared{g.charge, g.mail, g.wire}, Observer: g.sizes,
	}))(t)
	pages := check.Must(console.Handler([]console.Engine{{Runner: g.engine, Batches: g.sizes}}, console.Options{
		Authenticate: func(*http.Request) (console.Actor, error) {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.actor, nil
		},
		Audit: func(_ context.Context, e console.Event) error {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.events = append(g.events, e)
			return g.refuse
		},
	}))(t)
	mux := http.NewServeMux()
	mux.Handle("/console/", http.StripPrefix("/console", pages))
	g.server = httptest.NewServer(mux)
	t.Cleanup(g.server.Close)
	return g
}

func memoryRig(t *testing.T) *rig {
	t.Helper()
	return newRig(t, memory.New(memory.Options{}))
}

// become changes the actor of the following requests.
func (g *rig) become(a console.Actor) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.actor = a
}

// run runs a call of an operation, which fails with errBank if fails is set.
func (g *rig) run(t *testing.T, op *semel.Operation[input], key string, fails bool) store.ID {
	t.Helper()
	call := op.Call(semel.ScopeOf("shop", "7"), key, input{"4111-1111"})
	_, _, err := semel.Do(t.Context(), g.engine, call, func(context.Context) (string, error) {
		if fails {
			return "", errBank
		}
		return "paid <b>all</b>", nil
	})
	if (err != nil) != fails {
		t.Fatalf("%s %s: error %v", call.Operation(), key, err)
	}
	return call.ID()
}

// answer is a response and its body.
type answer struct {
	*http.Response

	body string
}

// send sends a request with headers, as pairs.
func (g *rig) send(t *testing.T, method, path string, form url.Values, headers ...string) answer {
	t.Helper()
	req := check.Must(http.NewRequestWithContext(t.Context(), method, g.server.URL+"/console/"+path, strings.NewReader(form.Encode())))(t)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res := check.Must(client.Do(req))(t)
	defer res.Body.Close()
	return answer{res, string(check.Must(io.ReadAll(res.Body))(t))}
}

func (g *rig) get(t *testing.T, path string) answer {
	t.Helper()
	return g.send(t, http.MethodGet, path, nil)
}

// post sends a form as a page of the console does.
func (g *rig) post(t *testing.T, path string, form url.Values) answer {
	t.Helper()
	return g.send(t, http.MethodPost, path, form, "Sec-Fetch-Site", "same-origin")
}

// has checks the status and the texts of a page.
func (a answer) has(t *testing.T, status int, texts ...string) answer {
	t.Helper()
	check.Equal(t, a.StatusCode, status, "%s: status", a.Request.URL)
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			t.Errorf("%s has no %q:\n%s", a.Request.URL, text, a.body)
		}
	}
	return a
}

// hasNot checks that a page has none of the texts.
func (a answer) hasNot(t *testing.T, texts ...string) answer {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(a.body, text) {
			t.Errorf("%s has %q:\n%s", a.Request.URL, text, a.body)
		}
	}
	return a
}
