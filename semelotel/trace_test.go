package semelotel_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

var (
	order  = semel.Define("order", semel.OperationOptions[string]{})
	charge = semel.Define("charge", semel.OperationOptions[string]{})
	mail   = semel.Define("mail", semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Retry: &semel.Retry{}})
)

// provider is another service. It returns the trace of each call that it received.
func provider(t *testing.T) (url string, calls <-chan trace.SpanContext) {
	t.Helper()
	received := make(chan trace.SpanContext, 9)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		received <- trace.SpanContextFromContext(ctx)
	}))
	t.Cleanup(server.Close)
	return server.URL, received
}

// call calls the provider, as an instrumented client does.
func call(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return err
	}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(req.Header))
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// TestOneTrace: a request, the call that it makes, the task that it enqueues, the call of that
// task in a worker, and the event that it appends, with its handling by an inbox, are one trace.
func TestOneTrace(t *testing.T) {
	t.Parallel()
	r := newRig(t, semel.Options{Operations: []semel.Declared{mail}})
	url, calls := provider(t)
	ctx, request := r.tracers.Tracer("test").Start(t.Context(), "request")
	_, _, err := semel.DoTx(ctx, r.Engine, order.Call(shop, "1", "a"), func(ctx context.Context, tx *sql.Tx) (string, error) {
		_, err := semel.EnqueueTx(ctx, r.Engine, tx, mail.Call(shop, "1", "a"), semel.EnqueueOptions{})
		return "a", errors.Join(err, outbox.AppendTx(ctx, r.Engine, tx, outbox.Event{
			Topic: "orders", Aggregate: "1", Type: "placed", Headers: map[string]string{"tenant": "x"},
		}))
	})
	check.Require(t, err)
	_, _, err = semel.Do(ctx, r, charge.Call(shop, "1", "a"), func(ctx context.Context) (string, error) { return "a", call(ctx, url) })
	check.Require(t, err)
	request.End()
	direct := <-calls

	ran := make(chan trace.SpanContext, 1)
	worker := check.Must(task.New(r, task.Options{}))(t)
	check.Require(t, task.Handle(worker, mail, func(ctx context.Context, _ string) (string, error) {
		ran <- trace.SpanContextFromContext(ctx)
		return "", call(ctx, url)
	}, task.HandlerOptions{}))
	run(t, worker.Run, func() { <-ran })
	later := <-calls

	published := make(chan outbox.Message, 1)
	var publishing trace.SpanContext
	relay := check.Must(outbox.NewRelay(r.Engine, outbox.PublisherFunc(func(ctx context.Context, m outbox.Message) error {
		publishing = trace.SpanContextFromContext(ctx)
		published <- m
		return nil
	}), outbox.Options{}))(t)
	var message outbox.Message
	run(t, relay.Run, func() { message = <-published })

	ship := check.Must(inbox.New("ship", inbox.Options[[]byte]{Group: "ship"}))(t)
	received := adapter.ExtractTrace(t.Context(), r, message.Headers)
	handled := inbox.HandleTx(received, ship, r.Engine, inbox.Message[[]byte]{Producer: "shop", ID: message.ID, Payload: message.Payload},
		func(context.Context, *sql.Tx, []byte) error { return nil })
	check.Require(t, handled.Err)

	orderSpan, chargeSpan, mailSpan := r.ended(t, "run order"), r.ended(t, "run charge"), r.ended(t, "run mail")
	wantLinks(t, request.SpanContext(), map[string]link{
		"the parent of the operation":        {orderSpan.Parent(), request.SpanContext()},
		"the parent of the second operation": {chargeSpan.Parent(), request.SpanContext()},
		"the provider's caller":              {direct, chargeSpan.SpanContext()},
		"the parent of the task":             {mailSpan.Parent(), orderSpan.SpanContext()},
		"the provider's caller in the task":  {later, mailSpan.SpanContext()},
		"the caller of the publisher":        {publishing, orderSpan.SpanContext()},
		"the trace of the headers":           {fromHeaders(message.Headers), orderSpan.SpanContext()},
		"the parent of the event's handling": {r.ended(t, "run ship").Parent(), orderSpan.SpanContext()},
	})
	check.Equal(t, message.Headers["tenant"], "x", "the header of the event")
	check.Equal(t, attributeOf(mailSpan, "semel.outcome"), "succeeded", "outcome")
	check.Equal(t, attributeOf(mailSpan, "semel.attempt"), "1", "attempt")
	for _, s := range r.spans.Ended() {
		if s.Name() == "run "+outbox.Operation {
			t.Error("the lease of a lane is a span")
		}
	}
}

// run runs a worker or a relay until what has returned.
func run(t *testing.T, loop func(ctx context.Context) error, what func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- loop(ctx) }()
	what()
	stop()
	check.NoError(t, <-ended)
}

func fromHeaders(headers map[string]string) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier(headers))
	return trace.SpanContextFromContext(ctx).WithRemote(false)
}

// TestReplayIsAnEvent: a replay runs nothing, so it has no span of its own. The caller's span
// says that the answer was replayed.
func TestReplayIsAnEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t, semel.Options{CacheBytes: 1 << 20})
	for _, name := range []string{"first", "second", "third"} { // the third one comes from the cache
		ctx, span := r.tracers.Tracer("test").Start(t.Context(), name)
		_, replayed, err := semel.DoTx(ctx, r.Engine, order.Call(shop, "1", "a"), func(context.Context, *sql.Tx) (string, error) { return "a", nil })
		check.Require(t, err)
		check.Equal(t, replayed, name != "first", "replayed")
		span.End()
		got := slices.ContainsFunc(r.ended(t, name).Events(), func(e sdktrace.Event) bool { return e.Name == "semel.replayed" })
		check.Equal(t, got, replayed, "the span %s says that it was replayed", name)
	}
	r.ended(t, "run order") // the only one
}

// TestSpanOfABatch: a function that builds statements has a span until they are committed. It
// also runs for a key that turns out to be in use, and its span then says so.
func TestSpanOfABatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, semel.Options{})
	mem := check.Must(semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure, Tracer: r.telemetry}))(t)
	for _, outcome := range []string{"succeeded", "replayed"} {
		r.spans.Reset()
		_, _, err := semel.DoBatch(t.Context(), mem, order.Call(shop, "1", "a"), func(ctx context.Context) (string, memory.Batch, error) {
			check.Equal(t, trace.SpanContextFromContext(ctx).IsValid(), true, "a span in the function's context")
			return "a", nil, nil
		})
		check.Require(t, err)
		span := r.ended(t, "run order")
		check.Equal(t, attributeOf(span, "semel.outcome"), outcome, "outcome")
		check.Equal(t, span.Status().Code, codes.Unset, "status")
	}
}

// TestTraceIsNotPartOfARequest: the trace of the first caller has no influence on whether a
// second call is the same request.
func TestTraceIsNotPartOfARequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, semel.Options{Operations: []semel.Declared{mail}})
	plain := check.Must(semel.New(r.store, semel.Options{Operations: []semel.Declared{mail}}))(t)
	t.Cleanup(func() { check.NoError(t, plain.Close(context.Background())) })
	for i, e := range []semel.Runner{r, plain, r} {
		ctx, span := r.tracers.Tracer("test").Start(t.Context(), "request")
		added, err := semel.Enqueue(ctx, e, mail.Call(shop, "1", "a"), semel.EnqueueOptions{})
		span.End()
		check.Require(t, err)
		check.Equal(t, added, i == 0, "added")
	}
}

// TestRetryContinuesTheTrace: a worker that goes on with a direct call is a part of its trace.
func TestRetryContinuesTheTrace(t *testing.T) {
	t.Parallel()
	again := semel.Define("again", semel.OperationOptions[string]{
		Policy: semel.AtLeastOnce(), Retry: &semel.Retry{Delay: func(int) time.Duration { return 0 }},
	})
	r := newRig(t, semel.Options{Operations: []semel.Declared{again}})
	ctx, request := r.tracers.Tracer("test").Start(t.Context(), "request")
	_, _, err := semel.Do(ctx, r, again.Call(shop, "1", "a"), func(context.Context) (string, error) { return "", errors.New("boom") })
	check.Fails(t, err, "Do")
	request.End()
	first := r.ended(t, "run again").SpanContext()
	ran := make(chan trace.SpanContext, 1)
	worker := check.Must(task.New(r, task.Options{}))(t)
	check.Require(t, task.Handle(worker, again, func(ctx context.Context, _ string) (string, error) {
		ran <- trace.SpanContextFromContext(ctx)
		return "", nil
	}, task.HandlerOptions{}))
	run(t, worker.Run, func() {
		if second := <-ran; second.TraceID() != first.TraceID() || second.SpanID() == first.SpanID() {
			t.Errorf("the second attempt is %v, want a span in the trace of %v", second, first)
		}
	})
}

// TestOutcomesOfSpans: the span of an attempt says how it ended, in every way to run one. Each
// transaction of a call is a run of its function, and has a span.
func TestOutcomesOfSpans(t *testing.T) {
	t.Parallel()
	type function = func(ctx context.Context, r *rig, run int) (string, error)
	fails := func(err error) function { return func(context.Context, *rig, int) (string, error) { return "", err } }
	errBoom := errors.New("boom")
	atomic := semel.Define("atomic", semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: time.Minute})
	for name, test := range map[string]struct {
		op       *semel.Operation[string]
		fn       function
		outcomes string
		failed   bool // the last span is an error
	}{
		"in doubt": {charge, fails(errBoom), "in_doubt", true},
		"released": {order, fails(errBoom), "released", true},
		"failed":   {atomic, fails(semel.Final(errBoom)), "failed", true},
		"panic":    {order, func(context.Context, *rig, int) (string, error) { panic("boom") }, "released", false},
		"conflict": {order, func(_ context.Context, _ *rig, run int) (string, error) {
			if run == 1 {
				return "", store.ErrConflict
			}
			return "a", nil
		}, "retried succeeded", false},
		"superseded": {charge, func(ctx context.Context, r *rig, _ int) (string, error) {
			a, _ := semel.AttemptOf(ctx)
			other := a.Record()
			other.Token = store.Token{State: store.Succeeded, Attempt: 2, Owner: 4}
			other.Due, other.Outcome = 0, []byte(`j"b"`)
			_, err := r.store.Swap(ctx, []store.Change{{If: a.Token(), To: other}})
			return "a", err
		}, "fenced", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, runs, call := newRig(t, semel.Options{}), 0, test.op.Call(shop, "1", "a")
			fn := func(ctx context.Context) (string, error) { runs++; return test.fn(ctx, r, runs) }
			func() {
				defer func() { _ = recover() }()
				if test.op == charge {
					_, _, _ = semel.Do(t.Context(), r, call, fn)
				} else {
					_, _, _ = semel.DoTx(t.Context(), r.Engine, call, func(ctx context.Context, _ *sql.Tx) (string, error) { return fn(ctx) })
				}
			}()
			spans := r.named("run " + test.op.Name())
			var got []string
			for _, s := range spans {
				got = append(got, attributeOf(s, "semel.outcome"))
			}
			check.Equal(t, strings.Join(got, " "), test.outcomes, "outcomes")
			check.Equal(t, spans[len(spans)-1].Status().Code == codes.Error, test.failed, "the last span is an error")
		})
	}
}
