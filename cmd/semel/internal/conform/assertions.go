package conform

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// mustExecute sends a, which must be run as if there were no key.
func (t *caseRun) mustExecute(a request) *answer {
	got := t.send(a)
	if got.status < 200 || got.status > 299 {
		t.failf("the first request got %s", describe(got))
	}
	return got
}

// isReplay reports whether got says that it comes from the record.
func (t *caseRun) isReplay(got *answer) bool {
	name := t.profile.ReplayHeader
	return name != "" && got.header.Get(name) == t.profile.ReplayValue
}

// mustReplay sends a again, which must be answered with the first one's result. That
// it is so to the letter is another case.
func (t *caseRun) mustReplay(a request, first *answer) *answer {
	got := t.sendUntilSettled(a)
	t.mustEqual(got, first)
	return got
}

// mustEqual compares the results that two answers tell.
func (t *caseRun) mustEqual(got, first *answer) {
	switch {
	case got.status/100 != first.status/100:
		t.failf("the retry got %s, the first request %d", describe(got), first.status)
	case !bytes.Equal(got.body, first.body):
		t.failf("the retry has another body than the first answer, of %d and %d bytes", len(got.body), len(first.body))
	}
}

// mustRepeat sends a again, which must be answered as first was to the letter:
// status, body, and the headers that belong to the result.
func (t *caseRun) mustRepeat(a request, first *answer) *answer {
	got := t.mustReplay(a, first)
	if got.status != first.status {
		t.failf("the retry got %s, the first request %d", describe(got), first.status)
	}
	for _, name := range [...]string{
		"Location", "Etag", "Content-Type", "Content-Encoding", "Content-Disposition",
	} {
		if !slices.Equal(got.header[name], first.header[name]) {
			t.failf("the retry has another %s than the first answer", name)
		}
	}
	return got
}

// effectsOf asks how often op happened. Without a counter it is how many different successes
// were answered, which is the least that happened.
func (t *caseRun) effectsOf(op string) int {
	if !t.profile.Suite.counts() {
		return t.successes(op)
	}
	n, err := t.effects(t.ctx, op)
	t.must(err)
	return n
}

// mustHappen fails unless op happened exactly want times.
func (t *caseRun) mustHappen(op string, want int) {
	n := t.effectsOf(op)
	switch {
	case n == want, n < want && !t.profile.Suite.counts():
	case !t.profile.Suite.counts():
		t.failf("the effect happened at least %s, want %s: there were that many different successes", times(n), times(want))
	default:
		t.failf("the effect happened %s, want %s", times(n), times(want))
	}
}

// mustProtect sends a twice: it must happen once, and be answered twice.
func (t *caseRun) mustProtect(a request) {
	before := t.effectsOf(a.op)
	first := t.mustExecute(a)
	got := t.sendUntilSettled(a)
	t.mustHappen(a.op, before+1)
	t.mustEqual(got, first)
}

// mustReject sends a, which must be refused with the status of one of the codes,
// and not happen.
func (t *caseRun) mustReject(a request, codes ...string) *answer {
	before := t.effectsOf(a.op)
	got := t.mustRefuse(a, codes...)
	t.mustHappen(a.op, before)
	return got
}

// mustRefuse sends a, which must be refused with the status of one of the codes.
func (t *caseRun) mustRefuse(a request, codes ...string) *answer {
	got := t.send(a)
	t.checkRefused(got, codes...)
	return got
}

// mustRefuseAnyhow sends a, which must be refused, with whatever status.
func (t *caseRun) mustRefuseAnyhow(a request) {
	if got := t.sendUntilSettled(a); got.status < 400 || got.status > 499 {
		t.failf("the answer is %s, want a refusal", describe(got))
	}
}

// malformedKey is a header line that is no key. One with characters that no header
// may have would be refused by the HTTP server itself.
func (t *caseRun) malformedKey() string {
	if t.profile.takes("string") {
		return `"` + newKey()
	}
	return t.keyLine(newKey() + strings.Repeat("x", t.profile.Key.MaxLength))
}

func (t *caseRun) checkRefused(got *answer, codes ...string) {
	switch {
	case t.isRefusal(got, codes...):
	case t.anyClientError(codes) && got.status >= 400 && got.status <= 499:
		t.note("refused with %s", describe(got))
	default:
		t.failf("the answer is %s, want %s", describe(got), t.wantedStatuses(codes))
	}
}

func (t *caseRun) isRefusal(got *answer, codes ...string) bool {
	return slices.ContainsFunc(codes, func(code string) bool {
		return got.status == t.profile.Statuses[code] && t.hasCode(got, code)
	})
}

// invalidKeyCodes are the codes of a key that is not taken. RFC 9651 lets a parser
// ignore a field that it cannot read, and the key is then missing.
func invalidKeyCodes() []string { return []string{keyMalformed, keyMissing} }

// checkUnquoted holds a key without quotes to what the profile says. It returns what was seen if
// the profile says nothing: such a key is then refused, or taken and protected.
func (t *caseRun) checkUnquoted(a request) (seen string) {
	if !t.profile.assumes("key.forms") {
		t.checkTaken(a, t.profile.takes("raw"))
		return ""
	}
	return a.keys[0] + " " + t.protectedOrRefused(a)
}

// checkTaken holds a key that is taken to being protected, and one that is not to
// being refused. Never may it run without protection.
func (t *caseRun) checkTaken(a request, taken bool) {
	if taken {
		t.mustProtect(a)
		return
	}
	t.mustReject(a, invalidKeyCodes()...)
}

// protectedOrRefused holds a key that may be taken or not to not running unprotected, and says which
// it is.
func (t *caseRun) protectedOrRefused(a request) string {
	got := t.send(a)
	if got.status >= 200 && got.status <= 299 {
		t.mustReplay(a, got)
		t.mustHappen(a.op, 1)
		return "is accepted, and the request runs once"
	}
	t.checkRefused(got, invalidKeyCodes()...)
	t.mustHappen(a.op, 0)
	return "is refused with " + describe(got)
}

// hasCode reports whether got's body is about that code, or names none. What the
// fixture itself has written, which has the op in it, is about no code.
func (t *caseRun) hasCode(got *answer, code string) bool {
	var acted struct {
		Op string `json:"op"`
	}
	if json.Unmarshal(got.body, &acted) == nil && acted.Op != "" {
		return false
	}
	if t.profile.Errors == "stripe" {
		code = stripeCode(code)
	}
	said := errorCode(got)
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

// errorCode is the name that an error body gives to what is wrong; nothing when it
// gives none.
func errorCode(got *answer) string {
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
	return orDefault(body.Code, orDefault(body.Error.Code, body.Error.Type))
}

// documentationLink is where got says that its error is documented; nothing when it
// does not say.
func (t *caseRun) documentationLink(got *answer) string {
	var body struct {
		Type  string `json:"type"`
		Error struct {
			URL string `json:"doc_url"`
		} `json:"error"`
	}
	if json.Unmarshal(got.body, &body) == nil && body.Type != "about:blank" {
		if where := orDefault(body.Type, body.Error.URL); where != "" {
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

func (t *caseRun) absolute(ref string) string {
	u, err := url.Parse(ref)
	if err != nil {
		return ""
	}
	return t.server.base.ResolveReference(u).String()
}

// mustResolve fails unless the page at address is there.
func (t *caseRun) mustResolve(address string) {
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
