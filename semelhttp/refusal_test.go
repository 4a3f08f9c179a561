package semelhttp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

// TestRefusalWithoutItsResponse: a refusal stays a refusal: retries get its status,
// and are not told that the operation succeeded.
func TestRefusalWithoutItsResponse(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		for name, refuse := range map[string]http.HandlerFunc{
			"too large": func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusConflict)
				_, _ = io.WriteString(w, strings.Repeat("canary", 40))
			},
			"no-store": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "no-store")
				w.WriteHeader(http.StatusConflict)
				_, _ = io.WriteString(w, "canary")
			},
			"flushed": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.WriteHeader(http.StatusConflict)
				_, _ = io.WriteString(w, strings.Repeat("canary", 40))
				_ = http.NewResponseController(w).Flush()
			},
		} {
			b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
			o := options()
			o.MaxResponse = 100
			srv := serve(b, define("op", plain{}), o, func(w http.ResponseWriter, r *http.Request) {
				n.Add(1)
				refuse(w, r)
			})
			if first := (testRequest{}).do(t, srv); first.status != http.StatusConflict || !strings.Contains(first.body, "canary") || first.replayed() {
				t.Errorf("%s: the first caller got %d %q", name, first.status, first.body)
			}
			for range 2 {
				got := testRequest{}.do(t, srv)
				p := got.problem(t)
				if got.status != http.StatusConflict || p.Status != http.StatusConflict || p.Code != "http_409" || !got.replayed() {
					t.Errorf("%s: got %d %s, want a replayed 409", name, got.status, got.body)
				}
			}
			wantNowhere(t, b)
			if r := b.record(t, "op", "k1"); !r.State.Final() || n.Load() != 1 {
				t.Errorf("%s: the record is %v after %d runs", name, r.State, n.Load())
			}
		}
	})
}

// TestResponsesThatFillTheStore: the largest response that is stored by default is
// stored with its headers in every store. A refusal, which is stored as a failure,
// needs more space, and stays a refusal if its text is too long.
func TestResponsesThatFillTheStore(t *testing.T) {
	t.Parallel()
	o := options()
	kept := declared(t, o, semelhttp.Terms{Retention: time.Hour}).ReplayMaxBytes
	onEveryWay(t, func(t *testing.T, s *protectedSite) {
		for _, status := range []int{http.StatusCreated, http.StatusConflict} {
			of := &protectedSite{setup: s.setup, entryPoint: s.entryPoint, tag: fmt.Sprint("-", status)}
			base := serve(t, of.protect(t, o, of.handler(func(w http.ResponseWriter, _ *http.Request) error {
				w.Header().Set("Link", "</"+strings.Repeat("x", 8<<10)+">; rel=next")
				w.WriteHeader(status)
				_, err := io.WriteString(w, strings.Repeat("y", int(kept)))
				return err
			})))
			first, again := of.ask().do(t, base), of.ask().do(t, base)
			if first.status != status || int64(len(first.body)) != kept || first.replayed() {
				t.Errorf("%d: the first caller got %d and %d bytes", status, first.status, len(first.body))
			}
			if again.status != status || !again.replayed() || of.ran.Load() != 1 {
				t.Errorf("%d: the repeat got %d %.100s, replayed %v", status, again.status, again.body, again.replayed())
			}
			if status == http.StatusCreated {
				wantReplay(t, again, first)
			}
		}
	})
}

// TestDetailsOfAnotherProgram: a failure that an operator has recorded may contain
// anything, and is answered all the same.
func TestDetailsOfAnotherProgram(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		code, details string
		want          int
	}{
		{"http_lost", `{"response":"bm9uc2Vuc2U="}`, 422},
		{"http_lost", `{"response":1}`, 422},
		{"http_lost", `[1]`, 422},
		{"http_5000", `{}`, 422},
		{"http_200", `{}`, 422},
		{"410", `{}`, 422},
		{"http_410", `{}`, 410},
		{"http_410", `[1]`, 410},
	} {
		b := newTestEngine(t, semel.Options{})
		srv := b.leasedServer(t, define("op", plain{}), options(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
		_ = testRequest{}.do(t, srv)
		check.Must(admin.Resolve(t.Context(), b, admin.Resolution{
			ID: b.record(t, "op", "k1").ID, To: store.Failed, Actor: "eve", Reason: "looked",
			Failure: &semel.Failure{Code: row.code, Message: "lost", Details: json.RawMessage(row.details)},
		}))(t)
		if got := (testRequest{}).do(t, srv); got.status != row.want || got.problem(t).Detail != "lost" || !got.replayed() {
			t.Errorf("%s %s is answered %d %s, want %d", row.code, row.details, got.status, got.body, row.want)
		}
	}
}
