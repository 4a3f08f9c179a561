package conform

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// executes sends a, which must be run as if there were no key.
func (t *trial) executes(a ask) *answer {
	got := t.send(a)
	if got.status < 200 || got.status > 299 {
		t.failf("the first request is answered %s", shown(got))
	}
	return got
}

// marked reports whether got says that it comes from the record.
func (t *trial) marked(got *answer) bool {
	name := t.profile.ReplayHeader
	return name != "" && got.header.Get(name) == t.profile.ReplayValue
}

// replays sends a again, which must be answered with the first one's result. That
// it is so to the letter is another case.
func (t *trial) replays(a ask, first *answer) *answer {
	got := t.settled(a)
	t.equal(got, first)
	return got
}

// equal compares the results that two answers tell.
func (t *trial) equal(got, first *answer) {
	switch {
	case got.status/100 != first.status/100:
		t.failf("the repeat is answered %s, the first was answered %d", shown(got), first.status)
	case !bytes.Equal(got.body, first.body):
		t.failf("the repeat has another body than the first, of %d and %d bytes", len(got.body), len(first.body))
	}
}

// repeats sends a again, which must be answered as first was to the letter:
// status, body, and the headers that belong to the result.
func (t *trial) repeats(a ask, first *answer) *answer {
	got := t.replays(a, first)
	if got.status != first.status {
		t.failf("the repeat is answered %s, the first was answered %d", shown(got), first.status)
	}
	for _, name := range [...]string{
		"Location", "Etag", "Content-Type", "Content-Encoding", "Content-Disposition",
	} {
		if !slices.Equal(got.header[name], first.header[name]) {
			t.failf("the repeat has another %s than the first", name)
		}
	}
	return got
}

// count asks how often op happened. Without a counter it is how many different successes
// were answered, which is the least that happened.
func (t *trial) count(op string) int {
	if !t.profile.Suite.counts() {
		return t.successes(op)
	}
	n, err := t.effects(t.ctx, op)
	t.must(err)
	return n
}

// happened fails unless op happened exactly want times.
func (t *trial) happened(op string, want int) {
	n := t.count(op)
	switch {
	case n == want, n < want && !t.profile.Suite.counts():
	case !t.profile.Suite.counts():
		t.failf("it happened at least %s, want %s: that many different successes were answered", times(n), times(want))
	default:
		t.failf("it happened %s, want %s", times(n), times(want))
	}
}

// protected sends a twice: it must happen once, and be answered twice.
func (t *trial) protected(a ask) {
	before := t.count(a.op)
	first := t.executes(a)
	got := t.settled(a)
	t.happened(a.op, before+1)
	t.equal(got, first)
}

// rejected sends a, which must be refused with the status of one of the codes,
// and not happen.
func (t *trial) rejected(a ask, codes ...string) *answer {
	before := t.count(a.op)
	got := t.refused(a, codes...)
	t.happened(a.op, before)
	return got
}

// refused sends a, which must be refused with the status of one of the codes.
func (t *trial) refused(a ask, codes ...string) *answer {
	got := t.send(a)
	t.isRefused(got, codes...)
	return got
}

// declined sends a, which must be refused, with whatever status.
func (t *trial) declined(a ask) {
	if got := t.settled(a); got.status < 400 || got.status > 499 {
		t.failf("it is answered %s, want a refusal", shown(got))
	}
}

// malformed is a header line that is no key. One with characters that no header
// may have would be refused by the HTTP server itself.
func (t *trial) malformed() string {
	if t.profile.takes("string") {
		return `"` + fresh()
	}
	return t.line(fresh() + strings.Repeat("x", t.profile.Key.MaxLength))
}

func (t *trial) isRefused(got *answer, codes ...string) {
	switch {
	case t.refusal(got, codes...):
	case t.lenient(codes) && got.status >= 400 && got.status <= 499:
		t.note("refused with %s", shown(got))
	default:
		t.failf("it is answered %s, want %s", shown(got), t.wanted(codes))
	}
}

func (t *trial) refusal(got *answer, codes ...string) bool {
	return slices.ContainsFunc(codes, func(code string) bool {
		return got.status == t.profile.Statuses[code] && t.says(got, code)
	})
}

// refusedKey are the codes of a key that is not taken. RFC 9651 lets a parser
// ignore a field that it cannot read, and the key is then missing.
func refusedKey() []string { return []string{keyMalformed, keyMissing} }

// unquoted holds a key without quotes to what the profile says. It returns what was seen if
// the profile says nothing: such a key is then refused, or taken and protected.
func (t *trial) unquoted(a ask) (seen string) {
	if !t.profile.assumes("key.forms") {
		t.heldTo(a, t.profile.takes("raw"))
		return ""
	}
	return a.keys[0] + " " + t.either(a)
}

// heldTo holds a key that is taken to being protected, and one that is not to
// being refused. Never may it run without protection.
func (t *trial) heldTo(a ask, taken bool) {
	if taken {
		t.protected(a)
		return
	}
	t.rejected(a, refusedKey()...)
}

// either holds a key that may be taken or not to not running unprotected, and says which
// it is.
func (t *trial) either(a ask) string {
	got := t.send(a)
	if got.status >= 200 && got.status <= 299 {
		t.replays(a, got)
		t.happened(a.op, 1)
		return "is taken, and the request runs once"
	}
	t.isRefused(got, refusedKey()...)
	t.happened(a.op, 0)
	return "is refused with " + shown(got)
}

// says reports whether got's body is about that code, or names none. What the
// fixture itself has written, which has the op in it, is about no code.
func (t *trial) says(got *answer, code string) bool {
	var acted struct {
		Op string `json:"op"`
	}
	if json.Unmarshal(got.body, &acted) == nil && acted.Op != "" {
		return false
	}
	if t.profile.Errors == "stripe" {
		code = stripeCode(code)
	}
	said := codeIn(got)
	return said == "" || said == code
}

func stripeCode(code string) string {
	switch code {
	case keyReused:
		return "idempotency_error"
	case inProgress:
		return "idempotency_key_in_use"
	default:
		return code
	}
}

// codeIn is the name that an error body gives to what is wrong; nothing when it
// gives none.
func codeIn(got *answer) string {
	var body struct {
		Code  string `json:"code"`
		Error struct {
			Code string `json:"code"`
			Type string `json:"type"`
		} `json:"error"`
	}
	if json.Unmarshal(got.body, &body) != nil {
		return ""
	}
	return or(body.Code, or(body.Error.Code, body.Error.Type))
}

// documentation is where got says that its error is documented; nothing when it
// does not say.
func (t *trial) documentation(got *answer) string {
	var body struct {
		Type  string `json:"type"`
		Error struct {
			URL string `json:"doc_url"`
		} `json:"error"`
	}
	if json.Unmarshal(got.body, &body) == nil && body.Type != "about:blank" {
		if where := or(body.Type, body.Error.URL); where != "" {
			return t.absolute(where)
		}
	}
	for _, l := range got.header["Link"] {
		target, rel, ok := strings.Cut(l, ";")
		if ok && strings.Contains(rel, "describedby") {
			return t.absolute(strings.Trim(strings.TrimSpace(target), "<>"))
		}
	}
	return ""
}

func (t *trial) absolute(ref string) string {
	u, err := url.Parse(ref)
	if err != nil {
		return ""
	}
	return t.server.base.ResolveReference(u).String()
}

// resolves fails unless the page at address is there.
func (t *trial) resolves(address string) {
	u, err := url.Parse(address)
	if err != nil || u.Host != t.server.base.Host {
		t.note("%s is elsewhere and was not looked at", address)
		return
	}
	// Not below the base: the address is whole.
	at := server{&url.URL{Scheme: u.Scheme, Host: u.Host}}
	got, err := at.exchange(t.ctx, message{method: http.MethodGet, path: u.RequestURI()})
	if err != nil {
		t.failf("the documentation at %s: %v", u.Path, err)
	}
	if got.status != http.StatusOK {
		t.failf("the documentation at %s answers %d", u.Path, got.status)
	}
}
