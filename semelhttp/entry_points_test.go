package semelhttp_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

// entryPoint is a way to protect a handler, and to make its effect.
type entryPoint struct {
	name string
	op   semel.OperationOptions[semelhttp.Request]
	// within: the effect and the response are made inside semel.InTx.
	within bool
	// outside: the effect is in no transaction of the store.
	outside bool
}

// entryPoints are all of them. The leases are longer than any test.
func entryPoints() []entryPoint {
	return []entryPoint{
		{name: "atomic"},
		{name: "atomic leased", op: plain{Policy: semel.Atomic(), Lease: time.Hour}},
		{name: "in tx", op: plain{Policy: semel.Atomic(), Lease: time.Hour}, within: true},
		{name: "hold", op: plain{Lease: time.Hour}, outside: true},
	}
}

// protectedSite is a handler behind one entry point on one setup.
type protectedSite struct {
	*setup
	entryPoint
	tag  string       // of its key, if a setup has several sites of an entry point
	ran  atomic.Int64 // how often the handler has run
	made atomic.Int64 // effects outside of transactions
}

// Some of the entry points.
func inATransaction(w entryPoint) bool { return !w.outside }
func whileItRuns(w entryPoint) bool    { return w.within || w.outside } // the outcome may be stored before the handler returns

// onEveryWay runs test on each store with each entry point, with keys of its own.
func onEveryWay(t *testing.T, test func(t *testing.T, s *protectedSite)) {
	t.Helper()
	onWays(t, func(entryPoint) bool { return true }, test)
}

// onWays is onEveryWay for the entry points that pick chooses.
func onWays(t *testing.T, pick func(entryPoint) bool, test func(t *testing.T, s *protectedSite)) {
	t.Helper()
	onEveryStore(t, func(t *testing.T, r *setup) {
		for _, w := range entryPoints() {
			if !pick(w) {
				continue
			}
			t.Run(w.name, func(t *testing.T) { test(t, &protectedSite{setup: r, entryPoint: w}) })
		}
	})
}

// protect returns h behind s's middleware.
func (s *protectedSite) protect(t *testing.T, o semelhttp.Options, h http.Handler) http.Handler {
	t.Helper()
	op := semel.Define(s.name0(), s.op)
	var protect func(http.Handler) http.Handler
	var err error
	if s.within || s.outside {
		protect, err = semelhttp.Middleware(s.runner, op, o)
	} else {
		protect, err = s.atomic(op, o)
	}
	check.Require(t, err, "%s", s.name)
	return protect(h)
}

// name0 is the name of s's operation.
func (s *protectedSite) name0() string {
	return map[string]string{"atomic": "a", "atomic leased": "al", "in tx": "it", "hold": "h"}[s.name]
}

// handler runs act where the effect belongs. An error of act is answered with 500.
func (s *protectedSite) handler(act func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.ran.Add(1)
		err := error(nil)
		if s.within {
			err = s.inTx(r.Context(), func(ctx context.Context) error { return act(w, r.WithContext(ctx)) })
		} else {
			err = act(w, r)
		}
		if err != nil {
			http.Error(w, "it broke", http.StatusInternalServerError)
		}
	}
}

// effect makes the effect of s's key.
func (s *protectedSite) effect(ctx context.Context) error {
	if s.outside {
		s.made.Add(1)
		return nil
	}
	return s.setup.effect(ctx, s.key())
}

// had counts the committed effects of s's key.
func (s *protectedSite) had() int {
	if s.outside {
		return int(s.made.Load())
	}
	return s.effects(s.key())
}

// key is the key of s's requests.
func (s *protectedSite) key() string { return "k-" + s.name0() + s.tag }

// ask is a request with s's key.
func (s *protectedSite) ask() testRequest { return testRequest{key: []string{s.key()}} }

// record is the current record of s's key.
func (s *protectedSite) record() store.Record { return s.get(s.name0(), s.key()) }

// creates makes the effect and responds 201.
func (s *protectedSite) creates(w http.ResponseWriter, r *http.Request) error {
	if err := s.effect(r.Context()); err != nil {
		return err
	}
	w.Header().Set("Location", "/ops/7")
	w.WriteHeader(http.StatusCreated)
	_, err := w.Write([]byte("made"))
	return err
}

// wantHad checks how often the handler ran and how many effects are committed.
func (s *protectedSite) wantHad(t *testing.T, ran, had int) {
	t.Helper()
	check.Equal(t, int(s.ran.Load()), ran, "the handler ran")
	check.Equal(t, s.had(), had, "there: effects")
}

// wantMade checks that a retry gets the response of the one request that ran.
func (s *protectedSite) wantMade(t *testing.T, got answer) {
	t.Helper()
	if got.status != http.StatusCreated || got.body != "made" || got.header.Get("Location") != "/ops/7" || !got.replayed() {
		t.Errorf("got %d %q %v, want what was made, as a replay", got.status, got.body, got.header)
	}
}

// settled retries until no attempt of the key is running.
func (s *protectedSite) settled(t *testing.T, base string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		got := s.ask().do(t, base)
		if got.status != http.StatusConflict || got.problem(t).Code != "in_progress" {
			return got
		}
		select {
		case <-ctx.Done():
			t.Fatalf("still %s", got.body)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
