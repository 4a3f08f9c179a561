package semelhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

// revoked is an Options.Reauthorize that counts its calls and refuses with err if
// that is set.
type revoked struct {
	err   atomic.Pointer[error]
	asked atomic.Int64
}

func (v *revoked) reauthorize(r *http.Request) error {
	v.asked.Add(1)
	if r.Header.Get("X-User") == "" {
		return errors.New("it is not the request")
	}
	if err := v.err.Load(); err != nil {
		return *err
	}
	return nil
}

// TestReauthorize: a caller without the permission does not get the response from
// any entry point; the response stays for other callers.
func TestReauthorize(t *testing.T) {
	t.Parallel()
	own := error(&semelhttp.Problem{Status: http.StatusNotFound, Code: "no_group"})
	everyWay(t, func(t *testing.T, serve func(*testEngine, semelhttp.Options, *atomic.Int64) string) {
		b, n, v := newTestEngine(t, semel.Options{}), new(atomic.Int64), new(revoked)
		o := options()
		o.Reauthorize = v.reauthorize
		srv := serve(b, o, n)
		first := testRequest{body: tea}.do(t, srv)
		wantFirst(t, first, http.StatusCreated, "run 1")
		check.Equal(t, v.asked.Load(), 0, "it is asked about an answer that is not stored")
		wantReplay(t, testRequest{body: tea}.do(t, srv), first)
		before := b.record(t, "op", "k1")
		wrong := errors.New("run 1 is none of your business")
		v.err.Store(&wrong)
		got := testRequest{body: tea}.do(t, srv)
		wantProblem(t, got, http.StatusForbidden, "forbidden")
		if strings.Contains(got.body, "run 1") || got.header.Get("Location") != "" {
			t.Errorf("%v %s discloses the answer", got.header, got.body)
		}
		v.err.Store(&own)
		if got := (testRequest{body: tea}).do(t, srv); got.status != http.StatusNotFound || got.problem(t).Code != "no_group" || got.replayed() {
			t.Errorf("got %d %s, want its own problem", got.status, got.body)
		}
		if after := b.record(t, "op", "k1"); after.Token != before.Token || after.State != store.Succeeded {
			t.Errorf("the record went from %v to %v", before.Token, after.Token)
		}
		v.err.Store(nil)
		wantReplay(t, testRequest{body: tea}.do(t, srv), first)
	})
}

// TestReauthorizeEveryStoredAnswer: a failure, and the fact that a response is not
// available, are stored answers too.
func TestReauthorizeEveryStoredAnswer(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		for name, h := range map[string]http.HandlerFunc{
			"refusal":   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "canary", http.StatusConflict) },
			"tombstone": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("canary", 100)) },
		} {
			b, v := newTestEngine(t, semel.Options{}), new(revoked)
			o := options()
			o.Reauthorize, o.MaxResponse = v.reauthorize, 100
			srv := serve(b, define("op", plain{}), o, h)
			_ = testRequest{}.do(t, srv)
			wrong := errors.New("no")
			v.err.Store(&wrong)
			got := testRequest{}.do(t, srv)
			wantProblem(t, got, http.StatusForbidden, "forbidden")
			if strings.Contains(got.body, "canary") || strings.Contains(got.body, "succeeded") {
				t.Errorf("%s: %s discloses the answer", name, got.body)
			}
			v.err.Store(nil)
			check.Equal(t, (testRequest{}).do(t, srv).status, http.StatusConflict, "%s: afterwards", name)
		}
	})
}

// TestReauthorizeAFailedEndpoint: also if the edge writes the failure.
func TestReauthorizeAFailedEndpoint(t *testing.T) {
	t.Parallel()
	b, v := newTestEngine(t, semel.Options{}), new(revoked)
	s := newShop(b, semel.OperationOptions[order]{})
	s.fail = semel.Final(&semel.Failure{Code: "sold_out", Message: "canary"})
	o := options()
	o.Reauthorize = v.reauthorize
	srv := s.serve(t, o)
	first := testRequest{body: tea}.do(t, srv)
	wantReplay(t, testRequest{body: tea}.do(t, srv), first)
	wrong := errors.New("no")
	v.err.Store(&wrong)
	got := testRequest{body: tea}.do(t, srv)
	wantProblem(t, got, http.StatusForbidden, "forbidden")
	if strings.Contains(got.body, "canary") {
		t.Errorf("%s discloses the failure", got.body)
	}
}

// TestReauthorizeReadsTheRequest: the hook gets the body that the handler got.
func TestReauthorizeReadsTheRequest(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, serve func(*testEngine, semelhttp.Options, *atomic.Int64) string) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		o := options()
		o.MaxBody = 100
		o.Reauthorize = func(r *http.Request) error {
			if body, err := io.ReadAll(r.Body); string(body) != tea || err != nil {
				return fmt.Errorf("read %q, %w", body, errors.Join(err))
			}
			return nil
		}
		srv := serve(b, o, n)
		first := testRequest{body: tea}.do(t, srv)
		wantReplay(t, testRequest{body: tea}.do(t, srv), first)
		wantProblem(t, testRequest{body: strings.Repeat(" ", 101)}.do(t, srv), http.StatusRequestEntityTooLarge, "body_too_large")
	})
}

// TestReauthorizeGetsTheOriginalRequest: the handler's changes of its request have
// no influence if another attempt was faster.
func TestReauthorizeGetsTheOriginalRequest(t *testing.T) {
	t.Parallel()
	b, n, bar := newTestEngine(t, semel.Options{}), new(atomic.Int64), newBarrier()
	var seen atomic.Pointer[string]
	o := options()
	o.Reauthorize = func(r *http.Request) error {
		request := r.URL.Path + " of " + r.Header.Get("X-User")
		seen.Store(&request)
		return nil
	}
	protect := func(e *semel.Engine[semelTx]) (func(http.Handler) http.Handler, error) {
		return semelhttp.Middleware(e, define("op", plain{Policy: semel.AtLeastOnce(), Lease: time.Hour}), o)
	}
	late := make(chan answer)
	_, first := overtaken(t, b, protect, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			r.URL.Path = "/elsewhere"
			r.Header.Del("X-User")
			bar.wait()
		}
		created(n)(w, r)
	}, bar, late, sendLater(t, late))
	close(bar.open)
	wantReplay(t, <-late, first)
	if got := seen.Load(); got == nil || *got != "/ops of ann" {
		t.Errorf("it sees %v", got)
	}
}

// TestReauthorizeAFollower: a follower gets its response from the record, so the
// hook is called for it.
func TestReauthorizeAFollower(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n, bar, v := newTestEngine(t, semel.Options{}), new(atomic.Int64), newBarrier(), new(revoked)
		o := options()
		o.Reauthorize = v.reauthorize
		wrong := errors.New("no")
		v.err.Store(&wrong)
		srv := serve(b, define("op", plain{Wait: 1 << 40}), o, func(w http.ResponseWriter, r *http.Request) {
			bar.wait()
			created(n)(w, r)
		})
		late := make(chan answer, 2)
		sendLater(t, late)(srv)
		bar.held(t, late)
		sendLater(t, late)(srv)
		close(bar.open)
		statuses := map[int]int{}
		for range 2 {
			statuses[(<-late).status]++
		}
		if statuses[http.StatusCreated] != 1 || statuses[http.StatusForbidden] != 1 || n.Load() != 1 {
			t.Errorf("answered %v after %d runs, want the leader 201 and the follower 403", statuses, n.Load())
		}
	})
}
