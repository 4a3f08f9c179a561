package server_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/semelgo/semel/examples/chat/server"
)

// described checks every response of a server, and every successful request,
// against the OpenAPI description.
type described struct {
	t      *testing.T
	router routers.Router
	next   http.Handler
}

// headerDescribed is a response header that a described server adds: "no" if the
// description does not allow the request.
const headerDescribed = "Test-Described"

// describe returns the middleware that checks a server against its description.
func describe(t *testing.T) func(http.Handler) http.Handler {
	t.Helper()
	router, err := gorillamux.NewRouter(description(t))
	if err != nil {
		t.Fatal(err)
	}
	return func(next http.Handler) http.Handler { return &described{t, router, next} }
}

// description reads the description and validates it.
func description(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(server.Description)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return doc
}

func (d *described) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, params, err := d.router.FindRoute(r)
	if err != nil || slices.Contains([]string{"/v1/ws", "/v1/events"}, r.URL.Path) { // the page, a stream, or a path or method that the server does not have
		d.next.ServeHTTP(w, r)
		return
	}
	sent, got := new(bytes.Buffer), &taken{ResponseWriter: w}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(r.Body, sent), r.Body}
	asked := r.Clone(context.WithoutCancel(r.Context()))
	got.before = func() {
		if d.allows(asked, route, params, sent) != nil {
			w.Header().Set(headerDescribed, "no")
		}
	}
	d.next.ServeHTTP(got, r)
	if got.status == 0 {
		return // the connection was closed before the response was complete
	}
	if err := d.allows(asked, route, params, sent); err != nil && got.status < http.StatusBadRequest {
		d.t.Errorf("%s %s was answered %d; the description refuses it: %v", r.Method, r.URL, got.status, err)
	}
	if err := d.answers(asked, route, params, got); err != nil {
		d.t.Errorf("%s %s: the answer %d is not as described: %v", r.Method, r.URL, got.status, err)
	}
}

func (d *described) options() *openapi3filter.Options {
	return &openapi3filter.Options{
		IncludeResponseStatus: true, RejectWhenRequestBodyNotSpecified: true, SkipSettingDefaults: true,
		AuthenticationFunc: func(_ context.Context, in *openapi3filter.AuthenticationInput) error {
			if !strings.HasPrefix(in.RequestValidationInput.Request.Header.Get("Authorization"), "Bearer ") {
				return in.NewError(nil)
			}
			return nil
		},
	}
}

// allows validates a request.
func (d *described) allows(r *http.Request, route *routers.Route, params map[string]string, body *bytes.Buffer) error {
	asked := r.Clone(r.Context())
	asked.Body = io.NopCloser(bytes.NewReader(body.Bytes()))
	if asked.Header.Get("Content-Type") == "" {
		asked.Header.Set("Content-Type", "application/json") // the server does not ask for it
	}
	o := d.options()
	o.ExcludeRequestBody = body.Len() == 0 && r.ContentLength > 0 // the server did not read the body
	return openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{
		Request: asked, PathParams: params, Route: route, Options: o,
	})
}

// answers validates a response.
func (d *described) answers(r *http.Request, route *routers.Route, params map[string]string, got *taken) error {
	in := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
		Status:                 got.status, Header: got.header, Options: d.options(),
	}
	return openapi3filter.ValidateResponse(r.Context(), in.SetBodyBytes(got.body.Bytes()))
}

// taken is a ResponseWriter that also records the response.
type taken struct {
	http.ResponseWriter

	before func() // called before the header is sent
	status int
	header http.Header
	body   bytes.Buffer
}

func (w *taken) WriteHeader(status int) {
	if w.status == 0 {
		w.before()
		w.status, w.header = status, w.Header().Clone()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *taken) Write(text []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.body.Write(text)
	return w.ResponseWriter.Write(text)
}
