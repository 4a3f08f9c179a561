package conform

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// mustExecute sends a, which must run as if there were no key.
func (t *caseRun) mustExecute(a request) *answer {
	got := t.send(a)
	if got.status < 200 || got.status > 299 {
		t.failf("the first request got %s", describe(got))
	}
	return got
}

// isReplay reports whether got is marked as a replay.
func (t *caseRun) isReplay(got *answer) bool {
	name := t.profile.ReplayHeader
	return name != "" && got.header.Get(name) == t.profile.ReplayValue
}

// mustReplay sends a again. The answer must have the first one's result.
// Another case compares the bytes.
func (t *caseRun) mustReplay(a request, first *answer) *answer {
	got := t.sendUntilSettled(a)
	t.mustEqual(got, first)
	return got
}

// mustEqual compares the results of two answers.
func (t *caseRun) mustEqual(got, first *answer) {
	switch {
	case got.status/100 != first.status/100:
		t.failf("the retry got %s, the first request %d", describe(got), first.status)
	case !bytes.Equal(got.body, first.body):
		t.failf("the retry has another body than the first answer, of %d and %d bytes", len(got.body), len(first.body))
	}
}

// mustRepeat sends a again. The answer must equal first byte for byte: status,
// body, and the headers that belong to the result.
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

// effectsOf returns the number of op's effects. Without a counter it is the
// number of different successful answers, which is a lower bound.
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

// mustProtect sends a twice. The effect must happen once, and both requests
// must be answered.
func (t *caseRun) mustProtect(a request) {
	before := t.effectsOf(a.op)
	first := t.mustExecute(a)
	got := t.sendUntilSettled(a)
	t.mustHappen(a.op, before+1)
	t.mustEqual(got, first)
}

// mustReject sends a, which must be refused with the status of one of the codes
// and have no effect.
func (t *caseRun) mustReject(a request, codes ...string) *answer {
	before := t.effectsOf(a.op)
	got := t.mustRefuse(a, codes...)
	t.mustHappen(a.op, before)
	return got
}

// mustRefuse sends a, which must be refused with the status of one of the
// codes.
func (t *caseRun) mustRefuse(a request, codes ...string) *answer {
	got := t.send(a)
	t.checkRefused(got, codes...)
	return got
}

// mustRefuseAnyhow sends a, which must be refused with any status.
func (t *caseRun) mustRefuseAnyhow(a request) {
	if got := t.sendUntilSettled(a); got.status < 400 || got.status > 499 {
		t.failf("the answer is %s, want a refusal", describe(got))
	}
}

// malformedKey returns a header line that is not a key. It contains no characters
// that are invalid in a header, because the HTTP server itself would refuse them.
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

// invalidKeyCodes are the codes for a refused key. RFC 9651 allows a parser to
// ignore a field that it cannot read; the key is then missing.
func invalidKeyCodes() []string { return []string{keyMalformed, keyMissing} }

// checkUnquoted checks a key without quotes against the profile. If the profile
// does not say whether such keys are accepted, it returns the observation: the
// key must be refused, or accepted and protected.
func (t *caseRun) checkUnquoted(a request) (seen string) {
	if !t.profile.assumes("key.forms") {
		t.checkTaken(a, t.profile.takes("raw"))
		return ""
	}
	return a.keys[0] + " " + t.protectedOrRefused(a)
}

// checkTaken checks that an accepted key is protected, or that another key is
// refused. A request must never run without protection.
func (t *caseRun) checkTaken(a request, taken bool) {
	if taken {
		t.mustProtect(a)
		return
	}
	t.mustReject(a, invalidKeyCodes()...)
}

// protectedOrRefused checks that the key is accepted and protected, or refused.
// It returns which of the two.
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

// documentationLink returns the link to the documentation of an error; empty if
// there is none.
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

// mustResolve fails unless the page at address exists.
func (t *caseRun) mustResolve(address string) {
	u, err := url.Parse(address)
	if err != nil || u.Host != t.server.base.Host {
		t.note("%s is on another host and was not read", address)
		return
	}
	// The address is absolute, not relative to the base.
	at := server{&url.URL{Scheme: u.Scheme, Host: u.Host}}
	got, err := at.exchange(t.ctx, message{method: http.MethodGet, path: u.RequestURI()})
	if err != nil {
		t.failf("the documentation at %s: %v", u.Path, err)
	}
	if got.status != http.StatusOK {
		t.failf("the documentation at %s answers %d", u.Path, got.status)
	}
}
