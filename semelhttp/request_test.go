package semelhttp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
)

// TestHandlerSeesItsRequest: routed, with its body, however it was framed.
func TestHandlerSeesItsRequest(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b := newTestEngine(t, semel.Options{})
		srv := serve(b, define("op", plain{}), options(), func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s %q %d %v %v", r.Pattern, r.PathValue("id"), body, r.ContentLength, r.TransferEncoding, err)
		})
		want := `/ops/{id} 7 "{\"n\":1}" 7 [] <nil>`
		first := testRequest{path: "/ops/7"}.do(t, srv)
		wantFirst(t, first, http.StatusOK, want)
		chunked := testRequest{path: "/ops/7"}.request(t, srv)
		chunked.Body, chunked.ContentLength = io.NopCloser(strings.NewReader(`{"n":1}`)), -1
		resp := check.Must(testClient.Do(chunked))(t)
		defer resp.Body.Close()
		if resp.Header.Get(semelhttp.HeaderReplayed) != "true" {
			t.Errorf("the same request in chunks got %d, not a replay", resp.StatusCode)
		}
		other := testRequest{path: "/ops/7", key: []string{"k2"}}.request(t, srv)
		other.Body, other.ContentLength = io.NopCloser(strings.NewReader(`{"n":1}`)), -1
		resp = check.Must(testClient.Do(other))(t)
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); string(body) != want || err != nil {
			t.Errorf("in chunks the handler sees %q, %v, want %q", body, err, want)
		}
	})
}

// TestRequestFields: the parts of the fingerprint.
func TestRequestFields(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	seen := make(chan semelhttp.Request, 10)
	op := define("op", plain{Fingerprints: []func(semelhttp.Request) any{func(r semelhttp.Request) any {
		seen <- r
		return r.Body
	}}})
	srv := b.atomicServer(t, op, options(), func(http.ResponseWriter, *http.Request) {})
	first := testRequest{path: "/ops/a%2Fb?y=2&x=1", mediaType: `Text/Plain;  charset="UTF-8"`, body: "b"}.do(t, srv)
	got, want := fmt.Sprintf("%+v", <-seen), fmt.Sprintf("%+v", semelhttp.Request{
		Method: "POST", Path: "/ops/a%2Fb", Query: "y=2&x=1",
		MediaType: "text/plain; charset=UTF-8", Body: []byte("b"),
	})
	check.Equal(t, got, want, "the operation's input")
	// This operation compares the body alone.
	wantReplay(t, testRequest{method: "PATCH", body: "b"}.do(t, srv), first)
}

// TestUploadsAreRemoved: the files of a form that the handler parsed are removed
// after it.
func TestUploadsAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	srv := b.leasedServer(t, define("op", plain{}), options(), func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(0); err != nil { // all of it into files
			t.Errorf("ParseMultipartForm: %v", err)
		}
		files, err := os.ReadDir(os.TempDir())
		if err != nil || len(files) == 0 {
			t.Errorf("the upload is in no file: %v", err)
		}
		n.Add(1)
	})
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part := check.Must(w.CreateFormFile("file", "a.txt"))(t)
	_, _ = part.Write(bytes.Repeat([]byte("x"), 1<<19))
	check.Require(t, w.Close())
	wantFirst(t, testRequest{body: form.String(), mediaType: w.FormDataContentType()}.do(t, srv), http.StatusOK, "")
	if files, err := os.ReadDir(os.TempDir()); err != nil || len(files) != 0 || n.Load() != 1 {
		t.Errorf("%d files are left after %d runs, %v", len(files), n.Load(), err)
	}
}

// TestTargetsThatAreNotUTF8: requests that differ only in such bytes are different.
func TestTargetsThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r *http.Request, to string){
		"query":      func(r *http.Request, to string) { r.URL.RawQuery = "x=" + to },
		"media type": func(r *http.Request, to string) { r.Header.Set("Content-Type", "text/"+to) },
		"path":       func(r *http.Request, to string) { r.URL.Path, r.URL.RawPath = "/"+to, "" },
	} {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		h := b.protectedBy(t, options(), created(n))
		first := testRequest{}.request(t, "")
		change(first, "\xff")
		h.ServeHTTP(httptest.NewRecorder(), first)
		other, w := testRequest{}.request(t, ""), httptest.NewRecorder()
		change(other, "\xfe")
		h.ServeHTTP(w, other)
		if w.Code != http.StatusUnprocessableEntity || n.Load() != 1 {
			t.Errorf("%s: another byte is answered %d after %d runs, want 422", name, w.Code, n.Load())
		}
	}
}

// TestFingerprintBytesOfARequest holds the bytes whose digest is stored: after a change,
// retries across an upgrade would be other requests. Each field follows its length, so that no
// two requests have the same bytes.
func TestFingerprintBytesOfARequest(t *testing.T) {
	t.Parallel()
	r := semelhttp.Request{
		Method: "POST", Path: "/ops", Query: "a=1", MediaType: "text/plain", Body: []byte(strings.Repeat("b", 200)),
	}
	want := "before" + "\x02" + "\x04POST" + "\x04/ops" + "\x03a=1" + "\x0atext/plain" + "\xc8\x01" + strings.Repeat("b", 200)
	check.Result(appended(r))(t, want, "AppendFingerprint")
	r.Headers = map[string][]string{"Prefer": {"x", ""}, "If-Match": {"1"}}
	check.Result(appended(r))(t, want+"\x08If-Match\x01\x011"+"\x06Prefer\x02\x01x\x00", "AppendFingerprint with headers")
}

func appended(r semelhttp.Request) (string, error) {
	b, err := r.AppendFingerprint([]byte("before"))
	return string(b), err
}

// TestFingerprintsOfRequestsAreStable holds the JSON whose digest is stored: after
// a change, retries across an upgrade would be other requests.
func TestFingerprintsOfRequestsAreStable(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(semelhttp.Request{
		Method: "POST", Path: "/ops", Query: "a=<&b", MediaType: "application/json", Body: []byte(`{"n":1}`),
	})
	const want = `{"method":"POST","path":"/ops","query":"a=\u003c\u0026b","media_type":"application/json","body":"eyJuIjoxfQ=="}`
	if string(text) != want || err != nil {
		t.Errorf("a request is compared as\n%s, %v, want\n%s", text, err, want)
	}
}

// brokenFingerprint is a value that has no fingerprint.
type brokenFingerprint struct{}

func (brokenFingerprint) AppendFingerprint([]byte) ([]byte, error) {
	return nil, errors.New("the body names no account")
}

// TestRequestWithoutAFingerprint: the body cannot be compared, which its sender can mend.
func TestRequestWithoutAFingerprint(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b := newTestEngine(t, semel.Options{})
		op := define("op", plain{Fingerprints: []func(semelhttp.Request) any{
			func(semelhttp.Request) any { return brokenFingerprint{} },
		}})
		srv := serve(b, op, options(), func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
		wantProblem(t, testRequest{}.do(t, srv), http.StatusBadRequest, "body_invalid")
	})
}
