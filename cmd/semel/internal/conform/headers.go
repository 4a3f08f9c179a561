package conform

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
)

// mustCarry fails unless got has the script's headers. Without this check a
// retry could not miss a header that was never sent.
func (t *caseRun) mustCarry(got *answer, headers map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if !carries(got, name, headers[name]) {
			t.failf("the fixture answers without the scripted %s", name)
		}
	}
}

// carries reports whether got has that header. Some servers rewrite headers:
// without spaces, with added parameters, in another encoding.
func carries(got *answer, name, value string) bool {
	there := got.header.Values(name)
	if strings.ContainsFunc(value, func(r rune) bool { return r > unicode.MaxASCII }) {
		return len(there) > 0
	}
	return slices.ContainsFunc(there, func(v string) bool { return strings.HasPrefix(normalized(v), normalized(value)) })
}

func normalized(value string) string { return strings.ToLower(strings.ReplaceAll(value, " ", "")) }

// longAgo is a date that no current answer has.
const longAgo = "Thu, 01 Jan 1998 00:00:00 GMT"

// perExchangeHeaders are headers that belong to an exchange and not to its
// result.
func perExchangeHeaders() map[string]string {
	return map[string]string{
		"Set-Cookie": "session=secret", "X-RateLimit-Remaining": "7", "Retry-After": "7", "WWW-Authenticate": "Basic",
	}
}

// perHopHeaders are the per-exchange headers that a proxy may write itself.
func perHopHeaders() map[string]string {
	return map[string]string{"Date": longAgo, "Keep-Alive": "timeout=7"}
}

// nextDate is a delay after which a Date header differs: it has whole seconds,
// and some servers read their clock once per second.
const nextDate = 2100 * time.Millisecond

func (t *caseRun) oldHeaders() {
	a := t.newRequest()
	all := perExchangeHeaders()
	maps.Copy(all, perHopHeaders())
	if t.profile.Suite.offers(offerFixture) {
		a.script = &script{Headers: all}
	}
	first := t.mustExecute(a)
	if a.script != nil {
		t.mustCarry(first, perExchangeHeaders())
	}
	t.noteMissing(first, slices.Sorted(maps.Keys(all)))
	date := first.header.Get("Date")
	if date != "" && date != longAgo {
		t.sleep(nextDate)
	}
	got := t.mustReplay(a, first)
	delete(all, "Date")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if len(got.header.Values(name)) > 0 {
			t.failf("the replay has %s", name)
		}
	}
	if date != "" && got.header.Get("Date") == date {
		t.failf("the replay has the first response's Date")
	}
}

// noteMissing notes which of the headers the first answer does not have,
// because nothing can be tested about them. It ends the case if there are none.
func (t *caseRun) noteMissing(first *answer, names []string) {
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return len(first.header.Values(name)) > 0 })
	switch {
	case len(missing) == len(names):
		t.notShown("the first answer has none of %s", strings.Join(names, ", "))
	case len(missing) > 0:
		t.note("the first answer has no %s", strings.Join(missing, ", "))
	}
}
