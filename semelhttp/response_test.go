package semelhttp_test

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
)

func TestResponseRoundTrip(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]semelhttp.Response{
		"created": {Status: 201, Header: http.Header{"Location": {"/groups/7"}, "Content-Type": {"application/json"}}, Body: []byte(`{"id":7}`)},
		"values unsplit": {Status: 200, Header: http.Header{
			"Link": {`</a>; rel="next", </b>; rel="last"`, "</c>", ""},
		}},
		"no type to be guessed": {Status: 200, Header: http.Header{"Content-Type": nil}, Body: []byte("<html>")},
		"nothing":               {Status: 204, Header: http.Header{}},
		"bytes":                 {Status: 200, Header: http.Header{"X-Odd": {"caf\xe9"}}, Body: []byte{0, 1, 255, 0}},
		"a megabyte":            {Status: 200, Header: http.Header{}, Body: bytes.Repeat([]byte("x"), 1<<20)},
	} {
		got, err := semelhttp.ParseResponse(r.Raw())
		if err != nil {
			t.Errorf("%s: ParseResponse: %v", name, err)
			continue
		}
		if got.Status != r.Status || !bytes.Equal(got.Body, r.Body) {
			t.Errorf("%s: got %d and %d bytes, want %d and the %d bytes that were stored", name, got.Status, len(got.Body), r.Status, len(r.Body))
		}
		if diff := cmp.Diff(r.Header, got.Header, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		if _, kept := got.Header["Content-Type"]; name == "no type to be guessed" && !kept {
			t.Error("the Content-Type that is set to nothing is gone")
		}
	}
}

// TestRawIsStable: later versions read what a version has stored, so the bytes are
// written down here.
func TestRawIsStable(t *testing.T) {
	t.Parallel()
	r := semelhttp.Response{
		Status: 201, Body: []byte("ok"),
		Header: http.Header{"Vary": {"A", "B"}, "Etag": {`"1"`}, "Set-Cookie": {"s=1"}, "Date": {"now"}},
	}
	want := semel.Raw("\x01\xc9\x01\x02\x04Etag\x01\x03\"1\"\x04Vary\x02\x01A\x01B\x02ok")
	if got := r.Raw(); !bytes.Equal(got, want) {
		t.Errorf("Raw() = %q, want %q", got, want)
	}
}

// TestNeverStoredInAnySpelling: net/http sends a header in the spelling in which it
// was set, and clients read any spelling.
func TestNeverStoredInAnySpelling(t *testing.T) {
	t.Parallel()
	r := semelhttp.Response{Status: 200, Header: http.Header{
		"set-cookie": {"s=1"}, "DATE": {"now"}, "idempotent-replayed": {"true"}, "x-kept": {"1"},
	}}
	got := check.Must(semelhttp.ParseResponse(r.Raw()))(t)
	if diff := cmp.Diff(http.Header{"x-kept": {"1"}}, got.Header); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestParseResponseRefuses(t *testing.T) {
	t.Parallel()
	good := semelhttp.Response{Status: 201, Header: http.Header{"Etag": {"1"}}, Body: []byte("ok")}.Raw()
	bad := map[string]semel.Raw{
		"nothing":         nil,
		"JSON":            semel.Raw(`{"id":7}`),
		"a later version": append(semel.Raw{2}, good[1:]...),
		"rest":            append(append(semel.Raw{}, good...), 0),
		"informational":   semelhttp.Response{Status: 103}.Raw(),
		"no status":       semelhttp.Response{}.Raw(),
		"status too high": semelhttp.Response{Status: 1000}.Raw(),
	}
	for n := range len(good) {
		bad["cut after "+string(rune('a'+n))] = good[:n]
	}
	for name, raw := range bad {
		if got, err := semelhttp.ParseResponse(raw); err == nil {
			t.Errorf("%s: ParseResponse(%q) = %+v, want an error", name, raw, got)
		}
	}
}

// TestParseResponseIsBounded: false lengths do not make it allocate.
func TestParseResponseIsBounded(t *testing.T) {
	huge := "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
	for name, raw := range map[string]string{
		"body":    "\x01\xc8\x01\x00" + huge,
		"headers": "\x01\xc8\x01" + huge,
		"values":  "\x01\xc8\x01\x01\x01A" + huge,
		"name":    "\x01\xc8\x01\x01" + huge,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := semelhttp.ParseResponse(semel.Raw(raw)); err == nil {
			t.Errorf("%s: want an error", name)
		}
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
			t.Errorf("%s: %d bytes were allocated for %d", name, grown, len(raw))
		}
	}
}

func FuzzParseResponse(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte{1})
	f.Add([]byte(semelhttp.Response{Status: 204}.Raw()))
	f.Add([]byte(semelhttp.Response{Status: 201, Header: http.Header{"Location": {"/1"}, "Vary": {"A", "B"}}, Body: []byte("ok")}.Raw()))
	f.Add([]byte("\x01\xc8\x01\x02\x01A\xff"))
	f.Add([]byte(`{"id":7}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := semelhttp.ParseResponse(raw)
		if err != nil {
			return
		}
		again, err := semelhttp.ParseResponse(r.Raw())
		check.Require(t, err, "ParseResponse(%q) is good, but not what it stores", raw)
		if again.Status != r.Status || !bytes.Equal(again.Body, r.Body) {
			t.Fatalf("stored again: %+v, want %+v", again, r)
		}
	})
}

// TestHeaderBytesAreReplayed byte for byte.
func TestHeaderBytesAreReplayed(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b := newTestEngine(t, semel.Options{})
		o := options()
		o.ReplayHeaders = []string{"X-Name"}
		srv := serve(b, define("op", plain{}), o, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["X-Name"] = []string{"J\u00fcrgen", "\xe9", "", "a, b"}
			w.Header().Set("Content-Disposition", `attachment; filename*=UTF-8''%e2%82%ac.txt`)
			w.WriteHeader(http.StatusCreated)
		})
		first, again := testRequest{}.do(t, srv), testRequest{}.do(t, srv)
		wantReplay(t, again, first)
		for _, name := range []string{"X-Name", "Content-Disposition"} {
			if got, want := fmt.Sprintf("%q", again.header[name]), fmt.Sprintf("%q", first.header[name]); got != want || got == "[]" {
				t.Errorf("replayed %s = %s, want %s", name, got, want)
			}
		}
	})
}
