package semelotel_test

import (
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/semelhttp/client"
	"github.com/semelgo/semel/task"
)

var (
	atomicPost = semel.Define("atomic_post", semel.OperationOptions[semelhttp.Request]{})
	leasedPost = semel.Define("leased_post", semel.OperationOptions[semelhttp.Request]{Policy: semel.Keyed()})
)

// instrumented sends the trace of a request's context, as an instrumented transport does.
type instrumented struct{ *http.Transport }

func (i instrumented) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	propagation.TraceContext{}.Inject(r.Context(), propagation.HeaderCarrier(r.Header))
	return i.Transport.RoundTrip(r)
}

// TestTraceOverHTTP: a request that arrives over HTTP, its call of another service with a child
// key, and the same call by its task, are one trace, behind each of the middlewares. A replay
// adds no span.
func TestTraceOverHTTP(t *testing.T) {
	t.Parallel()
	for name, middleware := range map[string]func(r *rig) (func(http.Handler) http.Handler, error){
		"run atomic_post": func(r *rig) (func(http.Handler) http.Handler, error) {
			return semelhttp.Atomic(r.Engine, atomicPost, semelhttp.Options{ScopeFunc: shopScope})
		},
		"run leased_post": func(r *rig) (func(http.Handler) http.Handler, error) {
			return semelhttp.Middleware(r, leasedPost, semelhttp.Options{ScopeFunc: shopScope})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, semel.Options{Operations: []semel.Declared{mail}})
			url, calls := provider(t)
			outgoing := http.Client{Transport: &client.Transport{Base: instrumented{&http.Transport{DisableKeepAlives: true}}}}
			charge := func(ctx context.Context) error {
				req, err := http.NewRequestWithContext(client.WithChildKey(ctx, "charge"), http.MethodPost, url, http.NoBody)
				if err != nil {
					return err
				}
				resp, err := outgoing.Do(req)
				if err != nil {
					return err
				}
				return resp.Body.Close()
			}
			handler := check.Must(middleware(r))(t)(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				ctx := req.Context()
				check.NoError(t, r.enqueue(ctx), "enqueue")
				check.NoError(t, charge(ctx), "charge")
				w.WriteHeader(http.StatusCreated)
			}))
			_, caller := r.tracers.Tracer("test").Start(t.Context(), "caller")
			for range 2 { // the second one is replayed
				req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", strings.NewReader("{}"))
				req.Header.Set("Idempotency-Key", "k1")
				ctx := trace.ContextWithRemoteSpanContext(req.Context(), caller.SpanContext())
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, req.WithContext(ctx))
				check.Equal(t, w.Code, http.StatusCreated, "status")
			}
			caller.End()
			direct := <-calls
			worker := check.Must(task.New(r, task.Options{}))(t)
			check.Require(t, task.Handle(worker, mail, func(ctx context.Context, _ string) (string, error) { return "", charge(ctx) }, task.HandlerOptions{}))
			var later trace.SpanContext
			run(t, worker.Run, func() { later = <-calls })
			posted, mailed := r.ended(t, name), r.ended(t, "run mail")
			wantLinks(t, caller.SpanContext(), map[string]link{
				"the parent of the request's operation": {posted.Parent(), caller.SpanContext()},
				"the provider's caller":                 {direct, posted.SpanContext()},
				"the parent of the task":                {mailed.Parent(), posted.SpanContext()},
				"the provider's caller in the task":     {later, mailed.SpanContext()},
			})
		})
	}
}

func shopScope(*http.Request) (semel.Scope, error) { return shop, nil }

// enqueue enqueues a task in the transaction of ctx, if there is one.
func (r *rig) enqueue(ctx context.Context) error {
	call := mail.Call(shop, "1", "a")
	if tx, ok := semel.TxOf[*sql.Tx](ctx, r.Engine); ok {
		_, err := semel.EnqueueTx(ctx, r.Engine, tx, call, semel.EnqueueOptions{})
		return err
	}
	_, err := semel.Enqueue(ctx, r, call, semel.EnqueueOptions{})
	return err
}
