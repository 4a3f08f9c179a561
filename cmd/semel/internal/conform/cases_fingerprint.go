package conform

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
)

// fingerprintCases are about what makes it the same request.
func fingerprintCases() []Case {
	return []Case{
		{
			ID: "21", Level: Promise, Source: "draft 2.4", Fields: []string{"fingerprint"}, needs: []string{offerFixture},
			Says: "Ways to write the same request are the same request, or not, as the profile says.", run: (*trial).spellings,
		},
		{
			ID: "22", Level: Security, Source: "practice", Fields: []string{"fingerprint.covers"}, needs: []string{offerFixture},
			Says: "The target with its query, and the media type, are part of what makes it the same request, as far as the profile says.",
			run:  (*trial).covered,
		},
	}
}

// sameness says what the profile makes of another spelling.
type sameness int

const (
	same sameness = iota
	different
	open // the profile does not say
)

// spelling is another way to write a request.
type spelling struct {
	name string
	a    ask
	want sameness
	gzip bool // send the body compressed
}

func (t *trial) spellings() {
	for _, sp := range t.waysToWrite() {
		a := t.asking()
		sp.a.op, sp.a.keys = a.op, a.keys
		sp.a.body = bytes.ReplaceAll(sp.a.body, []byte("OP"), []byte(a.op))
		if sp.gzip {
			sp.a.body, sp.a.more = zip(sp.a.body), []line{{"Content-Encoding", "gzip"}}
		}
		a.body = fmt.Appendf(nil, `{"op":%q,"n":1}`, a.op)
		t.spelt(a, sp)
	}
	t.boundaries()
}

// spelt sends a, and then the other spelling with the same key.
func (t *trial) spelt(a ask, sp spelling) {
	first := t.executes(a)
	got := t.settled(sp.a)
	replayed := got.status <= 299 && bytes.Equal(got.body, first.body)
	t.happened(a.op, 1)
	switch {
	case sp.want == same && !replayed:
		t.failf("%s: answered %s, want the replay", sp.name, shown(got))
	case sp.want == different && got.status < 400:
		t.failf("%s: answered %s, want a refusal", sp.name, shown(got))
	}
}

// waysToWrite spells {"op":"OP","n":1} otherwise.
func (t *trial) waysToWrite() []spelling {
	byBytes, byMeaning := different, different
	switch body := t.profile.Fingerprint.Body; {
	case t.profile.assumes("fingerprint.body"):
		byBytes, byMeaning = open, open
	case body == "json":
		byBytes = same
	case body == "fields", body == "value":
		byBytes, byMeaning = same, open
	case body == "none":
		byBytes, byMeaning = same, same
	}
	numbers := byBytes
	if t.profile.Fingerprint.Body == "value" {
		numbers = open // 1.0 is no integer to every decoder
	}
	query := different
	switch {
	case t.profile.assumes("fingerprint.covers"):
		query = open
	case !t.profile.covers("target"):
		query = same
	}
	text := func(s string) ask { return ask{body: []byte(s)} }
	plain := `{"op":"OP","n":1}`
	return []spelling{
		{name: "another order of members", a: text(`{"n":1,"op":"OP"}`), want: byBytes},
		{name: "other white space", a: text("{ \"op\": \"OP\",\n\"n\": 1 }"), want: byBytes},
		{name: "1.0 for 1", a: text(`{"op":"OP","n":1.0}`), want: numbers},
		{name: "an escaped letter", a: text(`{"\u006fp":"OP","n":1}`), want: byBytes},
		{name: "a member twice", a: text(`{"op":"OP","n":1,"n":1}`), want: open},
		{name: "an unknown member", a: text(`{"op":"OP","n":1,"x":1}`), want: byMeaning},
		{name: "chunks instead of a length", a: ask{body: []byte(plain), chunked: true}, want: same},
		{name: "a query", a: ask{body: []byte(plain), query: "?a=1&b=2"}, want: query},
		{name: "gzip", a: text(plain), want: byMeaning, gzip: true},
	}
}

// boundaries sends a form anew, with another boundary between its parts.
func (t *trial) boundaries() {
	a := t.asking()
	multipart := func(boundary string) ask {
		body := strings.ReplaceAll("--B\r\nContent-Disposition: form-data; name=\"json\"\r\n\r\n"+
			`{"op":"`+a.op+`","n":1}`+"\r\n--B--\r\n", "B", boundary)
		return ask{op: a.op, keys: a.keys, body: []byte(body), media: "multipart/form-data; boundary=" + boundary}
	}
	first := t.send(multipart("one"))
	if first.status == http.StatusUnsupportedMediaType || first.status == http.StatusBadRequest {
		t.note("multipart bodies are not taken")
		return
	}
	got := t.settled(multipart("two"))
	if t.profile.Fingerprint.Body == "bytes" && got.status < 400 {
		t.against("fingerprint.body", "another multipart boundary: answered %s, want a refusal", shown(got))
	}
}

func zip(text []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, werr := w.Write(text)
	if err := firstOf(werr, w.Close()); err != nil { // not reachable: a buffer takes everything
		return nil
	}
	return b.Bytes()
}

func (t *trial) covered() {
	t.part("target", ask{query: "?x=1"})
	t.part("media_type", ask{media: "application/vnd.semel+json"})
	a := t.asking()
	a.query = "?a=1&b=2"
	t.executes(a)
	a.query = "?b=2&a=1"
	got := t.settled(a)
	t.happened(a.op, 1)
	t.note("another order of the query is answered %d", got.status)
}

// part sends a request again with one part changed.
func (t *trial) part(name string, changed ask) {
	a := t.asking()
	first := t.executes(a)
	changed.op, changed.keys = a.op, a.keys
	switch {
	case t.profile.assumes("fingerprint.covers"):
		t.note("another %s is answered %s", name, shown(t.settled(changed)))
	case t.profile.covers(name):
		t.declined(changed)
	default:
		t.replays(changed, first)
	}
	t.happened(a.op, 1)
}
