package semelhttp_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"mime/multipart"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
)

// How a second request compares with the first.
const (
	equal   = "equal"   // gets the stored response
	differs = "differs" // key_reused
	refused = "refused" // body_invalid
)

// byFields is an operation that compares the fields, or, without any, the whole
// body as JSON.
func byFields(fields ...string) *semel.Operation[semelhttp.Request] {
	return define("op", plain{Fingerprints: []func(semelhttp.Request) any{semelhttp.JSONFields(fields...)}})
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	check.Must(io.WriteString(w, text))(t)
	check.Require(t, w.Close())
	return b.String()
}

// form returns a multipart body with that boundary, and its media type.
func form(t *testing.T, boundary string) (body, mediaType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	check.Require(t, w.SetBoundary(boundary))
	check.Require(t, w.WriteField("amount", "1"))
	check.Require(t, w.Close())
	return b.String(), w.FormDataContentType()
}

// mode is how a second request compares with the first if bodies are compared as
// sent, as JSON, or by the fields amount and currency.
type mode struct {
	first, second        testRequest
	bytes, whole, fields string
}

func modes(t *testing.T) map[string]mode {
	t.Helper()
	const body = `{"amount":1,"currency":"EUR","note":"é"}`
	formA, typeA := form(t, "aaaa")
	formB, typeB := form(t, "bbbb")
	return map[string]mode{
		"the same":       {testRequest{body: body}, testRequest{body: body}, equal, equal, equal},
		"member order":   {testRequest{body: body}, testRequest{body: `{"note":"é","currency":"EUR","amount":1}`}, differs, equal, equal},
		"whitespace":     {testRequest{body: body}, testRequest{body: " {\n\"amount\" : 1,\t\"currency\":\"EUR\", \"note\":\"é\" }\r\n"}, differs, equal, equal},
		"1 and 1.0":      {testRequest{body: body}, testRequest{body: `{"amount":1.0,"currency":"EUR","note":"é"}`}, differs, equal, equal},
		"1 and 10e-1":    {testRequest{body: body}, testRequest{body: `{"amount":10e-1,"currency":"EUR","note":"é"}`}, differs, equal, equal},
		"1 and 2":        {testRequest{body: body}, testRequest{body: `{"amount":2,"currency":"EUR","note":"é"}`}, differs, differs, differs},
		"1 and \"1\"":    {testRequest{body: body}, testRequest{body: `{"amount":"1","currency":"EUR","note":"é"}`}, differs, differs, differs},
		"beyond 2^53":    {testRequest{body: `{"amount":9007199254740993}`}, testRequest{body: `{"amount":9007199254740992}`}, differs, differs, differs},
		"1e21":           {testRequest{body: `{"amount":1e21}`}, testRequest{body: `{"amount":1000000000000000000000}`}, differs, equal, equal},
		"beyond 1e21":    {testRequest{body: `{"amount":1e21}`}, testRequest{body: `{"amount":1000000000000000000001}`}, differs, differs, differs},
		"name in case":   {testRequest{body: `{"amount":1}`}, testRequest{body: `{"amount":1,"AMOUNT":100}`}, differs, differs, refused},
		"name elsewhere": {testRequest{body: `{"amount":1}`}, testRequest{body: `{"amount":1,"x":{"AMOUNT":100}}`}, differs, differs, equal},
		"many digits":    {testRequest{body: body}, testRequest{body: `{"amount":1.00000000000000000001,"currency":"EUR","note":"é"}`}, differs, refused, refused},
		"elsewhere":      {testRequest{body: body}, testRequest{body: `{"amount":1,"currency":"EUR","x":0.1000000000000000055511151231257827}`}, differs, refused, equal},
		"too large":      {testRequest{body: body}, testRequest{body: `{"amount":1e400,"currency":"EUR"}`}, differs, refused, refused},
		"too small":      {testRequest{body: body}, testRequest{body: `{"amount":1e-400,"currency":"EUR"}`}, differs, refused, refused},
		"zeros":          {testRequest{body: `{"amount":0.0,"currency":[1.500,100e-2,-0.0]}`}, testRequest{body: `{"currency":[15.00E-1,0.01e+2,0e9],"amount":0}`}, differs, equal, equal},
		"escapes":        {testRequest{body: body}, testRequest{body: `{"amount":1,"currency":"\u0045UR","note":"\u00e9"}`}, differs, equal, equal},
		"slash escaped":  {testRequest{body: `{"amount":"a/b"}`}, testRequest{body: `{"amount":"a\/b"}`}, differs, equal, equal},
		"duplicate":      {testRequest{body: body}, testRequest{body: `{"amount":2,"amount":1,"currency":"EUR","note":"é"}`}, differs, refused, refused},
		"duplicate deep": {testRequest{body: `{"amount":1}`}, testRequest{body: `{"amount":1,"x":{"a":1,"a":1}}`}, differs, refused, refused},
		"unknown field":  {testRequest{body: body}, testRequest{body: `{"amount":1,"currency":"EUR","note":"é","extra":1}`}, differs, differs, equal},
		"other note":     {testRequest{body: body}, testRequest{body: `{"amount":1,"currency":"EUR","note":"?"}`}, differs, differs, equal},
		"field missing":  {testRequest{body: body}, testRequest{body: `{"amount":1,"note":"é"}`}, differs, differs, differs},
		"null":           {testRequest{body: `{"amount":1}`}, testRequest{body: `{"amount":1,"currency":null}`}, differs, differs, differs},
		"not an object":  {testRequest{body: body}, testRequest{body: `[1]`}, differs, differs, refused},
		"not JSON":       {testRequest{body: body}, testRequest{body: `{"amount":1`}, differs, refused, refused},
		"two values":     {testRequest{body: body}, testRequest{body: body + body}, differs, refused, refused},
		"bad UTF-8":      {testRequest{body: body}, testRequest{body: "{\"amount\":\"\xff\"}"}, differs, refused, refused},
		"lone surrogate": {testRequest{body: body}, testRequest{body: `{"amount":"\ud800"}`}, differs, refused, refused},
		"nothing":        {testRequest{body: body}, testRequest{body: " "}, differs, refused, refused},
		"gzip": {
			testRequest{body: body},
			testRequest{body: zipped(t, body), header: http.Header{"Content-Encoding": {"gzip"}}},
			differs, refused, refused,
		},
		"boundary":       {testRequest{body: formA, mediaType: typeA}, testRequest{body: formB, mediaType: typeB}, differs, "", ""},
		"query order":    {testRequest{path: "/ops?a=1&b=2", body: body}, testRequest{path: "/ops?b=2&a=1", body: body}, differs, differs, differs},
		"query":          {testRequest{body: body}, testRequest{path: "/ops?a=1", body: body}, differs, differs, differs},
		"path":           {testRequest{body: body}, testRequest{path: "/ops/7", body: body}, differs, differs, differs},
		"method":         {testRequest{body: body}, testRequest{method: "PUT", body: body}, differs, differs, differs},
		"media type":     {testRequest{body: body}, testRequest{mediaType: "text/json", body: body}, differs, differs, differs},
		"case of a type": {testRequest{body: body}, testRequest{mediaType: "Application/JSON", body: body}, equal, equal, equal},
	}
}

// TestFingerprintModes: how two requests compare if the body is compared as sent,
// as JSON, or by chosen fields.
func TestFingerprintModes(t *testing.T) {
	t.Parallel()
	for name, c := range modes(t) {
		for mode, want := range map[string]string{"bytes": c.bytes, "json": c.whole, "fields": c.fields} {
			t.Run(name+", "+mode, func(t *testing.T) {
				t.Parallel()
				op := map[string]*semel.Operation[semelhttp.Request]{
					"bytes": define("op", plain{}), "json": byFields(), "fields": byFields("amount", "currency"),
				}[mode]
				if want == "" { // no JSON at all: the first request is refused already
					wantProblem(t, c.first.do(t, newTestEngine(t, semel.Options{}).leasedServer(t, op, options(), created(new(atomic.Int64)))),
						http.StatusBadRequest, "body_invalid")
					return
				}
				both(t, func(t *testing.T, serve serveFunc) { compares(t, serve, op, c.first, c.second, want) })
			})
		}
	}
}

// compares sends first and then second, under one key, and checks how they compare.
func compares(t *testing.T, serve serveFunc, op *semel.Operation[semelhttp.Request], first, second testRequest, want string) {
	t.Helper()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	srv := serve(b, op, options(), created(n))
	wantFirst(t, first.do(t, srv), http.StatusCreated, "run 1")
	asked := b.store.calls.Load()
	got := second.do(t, srv)
	switch want {
	case equal:
		if got.status != http.StatusCreated || got.body != "run 1" || !got.replayed() {
			t.Errorf("got %d %s, want the first answer", got.status, got.body)
		}
	case differs:
		wantProblem(t, got, http.StatusUnprocessableEntity, "key_reused")
	case refused:
		wantProblem(t, got, http.StatusBadRequest, "body_invalid")
		check.Equal(t, b.store.calls.Load(), asked, "the store was asked about a request that has no fingerprint")
	}
	check.Equal(t, n.Load(), 1, "ran")
}

// TestFingerprintsAreStable holds the bytes that are compared: those of records
// that earlier versions of programs have stored.
func TestFingerprintsAreStable(t *testing.T) {
	t.Parallel()
	in := semelhttp.Request{
		Method: "POST", Path: "/ops/a%2Fb", Query: "x=<&y=1", MediaType: "application/json",
		Body: []byte(`{ "b" : [1.50, 1e3, 123456789012345678901234567890, 2000000000000000000000, -0, "<\u00e9\/"], "a":{"~/":null,"z":true}, "C": 1 }`),
	}
	const rest = `,"media_type":"application/json","method":"POST","path":"/ops/a%2Fb","query":"x=<&y=1"}`
	for _, c := range []struct {
		fields []string
		want   string
	}{
		{nil, `{"body":{"C":1,"a":{"z":true,"~/":null},"b":[1.5,1000,123456789012345678901234567890,2e+21,0,"<é/"]}` + rest},
		{[]string{"a"}, `{"body":{"a":{"z":true,"~/":null}}` + rest},
		{[]string{"b", "C", "absent"}, `{"body":{"C":1,"b":[1.5,1000,123456789012345678901234567890,2e+21,0,"<é/"]}` + rest},
		{[]string{"/a/~0~1", "/b/0", "/b/9", "/b/01", "/C/x", "/"}, `{"body":{"/a/~0~1":null,"/b/0":1.5}` + rest},
	} {
		got, ok := semelhttp.JSONFields(c.fields...)(in).(semel.Raw)
		if !ok || string(got) != c.want {
			t.Errorf("JSONFields(%q) =\n%s, want\n%s", c.fields, got, c.want)
		}
	}
}

// TestFieldsAreVersioned: a program that compares other fields knows the records of
// the earlier version; the earlier version refuses the new records.
func TestFieldsAreVersioned(t *testing.T) {
	t.Parallel()
	older := []func(semelhttp.Request) any{semelhttp.JSONFields("amount")}
	newer := append(older[:1:1], semelhttp.JSONFields("amount", "currency"))
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	before := b.leasedServer(t, define("op", plain{Fingerprints: older}), options(), created(n))
	after := b.leasedServer(t, define("op", plain{Fingerprints: newer}), options(), created(n))
	eur, usd := `{"amount":1,"currency":"EUR"}`, `{"amount":1,"currency":"USD"}`
	first := testRequest{body: eur}.do(t, before)
	wantReplay(t, testRequest{body: eur}.do(t, after), first)
	wantReplay(t, testRequest{body: usd}.do(t, after), first) // as it was compared when it was stored
	wantProblem(t, testRequest{body: `{"amount":2}`}.do(t, after), http.StatusUnprocessableEntity, "key_reused")
	second := []string{"k2"}
	_ = testRequest{key: second, body: eur}.do(t, after)
	wantProblem(t, testRequest{key: second, body: usd}.do(t, after), http.StatusUnprocessableEntity, "key_reused")
	wantProblem(t, testRequest{key: second, body: eur}.do(t, before), http.StatusServiceUnavailable, "unavailable")
}

// TestBodyInvalidSaysWhere: without repeating the body.
func TestBodyInvalidSaysWhere(t *testing.T) {
	t.Parallel()
	whole, fields := byFields(), byFields("a")
	for _, c := range []struct {
		op         *semel.Operation[semelhttp.Request]
		body, want string
	}{
		{fields, `{"a":canary}`, "at byte 5"},
		{fields, `{"a":1,"a":2}`, "a member twice"},
		{fields, `{"a":1,"A":"canary"}`, "name in another case"},
		{fields, `["canary"]`, "not a JSON object"},
		{fields, `"canary`, "not JSON"},
		{fields, "{\"a\":\"canary\xff\"}", "not JSON"},
		{whole, `["canary",0.1000000000000000000001]`, "a number with more digits"},
		{whole, `{"canary":1e400}`, "a number with more digits"},
		{whole, `["canary",]`, "at byte 9"},
	} {
		b := newTestEngine(t, semel.Options{})
		got := testRequest{body: c.body}.do(t, b.leasedServer(t, c.op, options(), created(new(atomic.Int64))))
		wantProblem(t, got, http.StatusBadRequest, "body_invalid")
		if d := got.problem(t).Detail; !strings.Contains(d, c.want) || strings.Contains(d, "canary") {
			t.Errorf("%s: %q, want it to say %q", c.body, d, c.want)
		}
	}
}

// FuzzNumbers: two numbers are compared as the same exactly when they are, to the
// last digit.
func FuzzNumbers(f *testing.F) {
	for _, pair := range [][2]string{
		{"1", "1.0"},
		{"0.1", "0.10000000000000000001"},
		{"1e22", "10000000000000000000000.0"},
		{"5e-324", "4e-324"},
		{"9007199254740993.0", "9007199254740992.0"},
		{"1e21", "1000000000000000000000"},
		{"1e21", "1000000000000000000001"},
		{"-1e21", "-1000000000000000000000"},
		{"123456789012345680000", "12345678901234568e4"},
		{"-0", "0.0e9"},
		{"999999999999999999999", "1e21"},
		{"100000000000000000000", "1e20"},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		compare := func(number string) (semel.Raw, bool) {
			raw, ok := semelhttp.JSONFields()(semelhttp.Request{Body: []byte(number)}).(semel.Raw)
			return raw, ok
		}
		a, isA := compare(one)
		b, isB := compare(two)
		if !isA || !isB || len(one)+len(two) > 100 || strings.ContainsAny(one+two, `"[{tfn`) {
			return
		}
		x, okX := new(big.Rat).SetString(strings.TrimSpace(one))
		y, okY := new(big.Rat).SetString(strings.TrimSpace(two))
		if okX && okY && bytes.Equal(a, b) != (x.Cmp(y) == 0) {
			t.Fatalf("%s and %s are compared as %s and %s", one, two, a, b)
		}
	})
}

func FuzzJSONFields(f *testing.F) {
	for _, body := range []string{`{"a":1,"b":[1.0]}`, `{"a":1,"a":2}`, `[]`, "", `{"a":"\ud800"}`, `{"a":1e999}`, "{\"\xff\":1}"} {
		f.Add([]byte(body), "a", "/b/0")
	}
	f.Fuzz(func(t *testing.T, body []byte, one, two string) {
		in := semelhttp.Request{Method: "POST", Path: "/", MediaType: "application/json", Body: body}
		whole, ok := semelhttp.JSONFields()(in).(semel.Raw)
		if !ok {
			return // refused
		}
		if !json.Valid(whole) {
			t.Fatalf("%q is compared as %q, which is no JSON", body, whole)
		}
		var parts struct{ Body json.RawMessage }
		check.Require(t, json.Unmarshal(whole, &parts))
		in.Body = parts.Body
		if again, ok := semelhttp.JSONFields()(in).(semel.Raw); !ok || !bytes.Equal(again, whole) {
			t.Fatalf("%q is compared as %q, and that as %q", body, whole, again)
		}
		_ = fmt.Sprint(semelhttp.JSONFields(one, two)(in))
	})
}
