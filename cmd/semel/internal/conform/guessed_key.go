package conform

import (
	"maps"
	"net/http"
	"slices"
)

// guessedKey compares B's answers for a key of A with B's answers for two
// unused keys. A header that only one of the last two answers has means
// nothing; B may have received a session.
func (t *caseRun) guessedKey() {
	if t.profile.Suite.principals() < 2 {
		t.notShown("it takes two principals, and suite.principals has %d", t.profile.Suite.principals())
	}
	if t.profile.Scope == "shared" {
		t.inform("by its profile all principals share keys")
	}
	a := t.newRequest()
	first := t.mustExecute(a)
	guess := a.withOtherPayload().asPrincipal(principalB)
	unused := t.send(guess.withKeys(t.keyLine(newKey())))
	got := t.send(guess)
	another := t.send(guess.withKeys(t.keyLine(newKey())))
	if got.status != unused.status || t.isReplay(got) != t.isReplay(unused) || errorCode(got) != errorCode(unused) {
		t.failf("a guessed key got %s, an unused one %s", describe(got), describe(unused))
	}
	if string(got.body) == string(first.body) && len(got.body) > 0 {
		t.failf("a guessed key got the other principal's response")
	}
	t.mustHaveSameHeaders(got, unused, another)
}

// mustHaveSameHeaders compares the header names of got, the answer to a guessed
// key, with those of the answers to two unused keys.
func (t *caseRun) mustHaveSameHeaders(got, unused, another *answer) {
	for _, name := range slices.Sorted(maps.Keys(got.header)) {
		if !has(unused.header, name) && !has(another.header, name) {
			t.failf("the answer to a guessed key has %s, the answer to an unused key does not", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unused.header)) {
		if has(another.header, name) && !has(got.header, name) {
			t.failf("the answer to an unused key has %s, the answer to a guessed key does not", name)
		}
	}
}

func has(h http.Header, name string) bool { return len(h[name]) > 0 }
