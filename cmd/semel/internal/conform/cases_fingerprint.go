package conform

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
)

// fingerprintCases are about the fingerprint of requests.
func fingerprintCases() []Case {
	return []Case{
		{
			ID: "21", Level: Promise, Source: "draft 2.4", Fields: []string{"fingerprint"}, needs: []string{offerFixture},
			Says: "Different spellings of a request are the same request or not, as the profile says.", run: (*caseRun).spellings,
		},
		{
			ID: "22", Level: Security, Source: "practice", Fields: []string{"fingerprint.covers"}, needs: []string{offerFixture},
			Says: "The target with its query, and the media type, are part of the fingerprint, as the profile says.",
			run:  (*caseRun).covered,
		},
	}
}

// expectation is what the profile says about another spelling of a request.
type expectation int

const (
	same expectation = iota
	different
	unspecified // the profile does not say
)

// requestVariant is another way to write a request.
type requestVariant struct {
	name string
	a    request
	want expectation
	gzip bool // send the body compressed
}

func (t *caseRun) spellings() {
	for _, sp := range t.otherSpellings() {
		a := t.newRequest()
		sp.a.op, sp.a.keys = a.op, a.keys
		sp.a.body = bytes.ReplaceAll(sp.a.body, []byte("OP"), []byte(a.op))
		if sp.gzip {
			sp.a.body, sp.a.more = zip(sp.a.body), []line{{"Content-Encoding", "gzip"}}
		}
		a.body = fmt.Appendf(nil, `{"op":%q,"n":1}`, a.op)
		t.checkSpelling(a, sp)
	}
	t.boundaries()
}

// checkSpelling sends a, and then another spelling with the same key.
func (t *caseRun) checkSpelling(a request, sp requestVariant) {
	first := t.mustExecute(a)
	got := t.sendUntilSettled(sp.a)
	replayed := got.status <= 299 && bytes.Equal(got.body, first.body)
	t.mustHappen(a.op, 1)
	switch {
	case sp.want == same && !replayed:
		t.failf("%s: got %s, want the replay", sp.name, describe(got))
	case sp.want == different && got.status < 400:
		t.failf("%s: got %s, want a refusal", sp.name, describe(got))
	}
}

// otherSpellings returns other spellings of {"op":"OP","n":1}.
func (t *caseRun) otherSpellings() []requestVariant {
	byBytes, byMeaning := different, different
	switch body := t.profile.Fingerprint.Body; {
	case t.profile.assumes("fingerprint.body"):
		byBytes, byMeaning = unspecified, unspecified
	case body == "json":
		byBytes = same
	case body == "fields", body == "value":
		byBytes, byMeaning = same, unspecified
	case body == "none":
		byBytes, byMeaning = same, same
	}
	numbers := byBytes
	if t.profile.Fingerprint.Body == "value" {
		numbers = unspecified // some decoders reject 1.0 as an integer
	}
	query := different
	switch {
	case t.profile.assumes("fingerprint.covers"):
		query = unspecified
	case !t.profile.covers("target"):
		query = same
	}
	text := func(s string) request { return request{body: []byte(s)} }
	plain := `{"op":"OP","n":1}`
	return []requestVariant{
		{name: "another order of members", a: text(`{"n":1,"op":"OP"}`), want: byBytes},
		{name: "other white space", a: text("{ \"op\": \"OP\",\n\"n\": 1 }"), want: byBytes},
		{name: "1.0 for 1", a: text(`{"op":"OP","n":1.0}`), want: numbers},
		{name: "an escaped letter", a: text(`{"\u006fp":"OP","n":1}`), want: byBytes},
		{name: "a member twice", a: text(`{"op":"OP","n":1,"n":1}`), want: unspecified},
		{name: "an unknown member", a: text(`{"op":"OP","n":1,"x":1}`), want: byMeaning},
		{name: "chunks instead of a length", a: request{body: []byte(plain), chunked: true}, want: same},
		{name: "a query", a: request{body: []byte(plain), query: "?a=1&b=2"}, want: query},
		{name: "gzip", a: text(plain), want: byMeaning, gzip: true},
	}
}

// boundaries sends a multipart form twice, with different boundaries.
func (t *caseRun) boundaries() {
	a := t.newRequest()
	multipart := func(boundary string) request {
		body := strings.ReplaceAll("--B\r\nContent-Disposition: form-data; name=\"json\"\r\n\r\n"+
			`{"op":"`+a.op+`","n":1}`+"\r\n--B--\r\n", "B", boundary)
		return request{op: a.op, keys: a.keys, body: []byte(body), media: "multipart/form-data; boundary=" + boundary}
	}
	first := t.send(multipart("one"))
	if first.status == http.StatusUnsupportedMediaType || first.status == http.StatusBadRequest {
		t.note("multipart bodies are not accepted")
		return
	}
	got := t.sendUntilSettled(multipart("two"))
	if t.profile.Fingerprint.Body == "bytes" && got.status < 400 {
		t.failUnlessAssumed("fingerprint.body", "another multipart boundary: got %s, want a refusal", describe(got))
	}
}

func zip(text []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, werr := w.Write(text)
	if err := firstError(werr, w.Close()); err != nil { // not reachable: a buffer accepts every write
		return nil
	}
	return b.Bytes()
}

func (t *caseRun) covered() {
	t.checkCovered("target", request{query: "?x=1"})
	t.checkCovered("media_type", request{media: "application/vnd.semel+json"})
	a := t.newRequest()
	a.query = "?a=1&b=2"
	t.mustExecute(a)
	a.query = "?b=2&a=1"
	got := t.sendUntilSettled(a)
	t.mustHappen(a.op, 1)
	t.note("another order of the query got %d", got.status)
}

// checkCovered sends a request again with one part changed.
func (t *caseRun) checkCovered(name string, changed request) {
	a := t.newRequest()
	first := t.mustExecute(a)
	changed.op, changed.keys = a.op, a.keys
	switch {
	case t.profile.assumes("fingerprint.covers"):
		t.note("another %s got %s", name, describe(t.sendUntilSettled(changed)))
	case t.profile.covers(name):
		t.mustRefuseAnyhow(changed)
	default:
		t.mustReplay(changed, first)
	}
	t.mustHappen(a.op, 1)
}
