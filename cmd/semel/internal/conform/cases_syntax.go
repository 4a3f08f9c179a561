package conform

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
)

const (
	inDraft21 = "draft 2.1"
	in9651    = "RFC 9651"
)

// syntaxCases are about the syntax of the header field.
func syntaxCases() []Case {
	return []Case{
		{
			ID: "1", Level: Must, Source: inDraft21, Fields: []string{"header"},
			Says: "A key in quotes is accepted.", run: (*caseRun).quotedIsTaken,
		},
		{
			ID: "2", Level: Must, Source: inDraft21, Fields: []string{"key.forms"},
			Says: "A key without quotes is refused, or accepted and protected, as the profile says; it never runs unprotected.",
			run:  func(t *caseRun) { t.form(newKey()) },
		},
		{
			ID: "3", Level: Must, Source: inDraft21, Fields: []string{"key.forms"},
			Says: "A key that is a token is treated like a key without quotes.",
			run:  func(t *caseRun) { t.form("k" + strings.ToLower(rand.Text())) },
		},
		{
			ID: "4", Level: Must, Source: inDraft21, Fields: []string{"key.forms"},
			Says: "Items that are not strings (bytes, numbers, booleans, dates, display strings, lists) are refused, or accepted as raw keys.",
			run:  (*caseRun).otherItems,
		},
		{
			ID: "5", Level: Must, Source: in9651 + " 4.2.5", Fields: []string{"key.forms"},
			Says: "Escaped quotes and backslashes are accepted; other escapes, open strings, control and non-ASCII characters are not.",
			run:  (*caseRun).escapes,
		},
		{
			ID: "6", Level: Must, Source: in9651 + " 3.1.2", Fields: []string{"key.forms"},
			Says: "Parameters after the string do not change the key.", run: (*caseRun).parameters,
		},
		{
			ID: "7", Level: Must, Source: in9651 + " 3.3",
			Says: "Two header lines, different or the same, are refused.", run: (*caseRun).twoLines,
		},
		{
			ID: "8", Level: Must, Source: in9651 + " 4.2",
			Says: "Spaces around a key are ignored, spaces inside it are part of it.", run: (*caseRun).spaces,
		},
		{
			ID: "9", Level: Must, Source: "RFC 9110 5.1",
			Says: "The header's name is case-insensitive, over HTTP/1.1 and HTTP/2; the key is case-sensitive.", run: (*caseRun).letterCase,
		},
	}
}

func (t *caseRun) quotedIsTaken() { t.mustProtect(t.newRequest().withKeys(quoted(newKey()))) }

// form sends keys without quotes. If the profile does not say whether they are
// accepted, it reports the observation.
func (t *caseRun) form(keys ...string) {
	var seen []string
	for _, key := range keys {
		if what := t.checkUnquoted(t.newRequest().withKeys(key)); what != "" {
			seen = append(seen, what)
		}
	}
	if len(seen) > 0 {
		t.reportObserved("key.forms", seen...)
	}
}

func (t *caseRun) otherItems() {
	if !t.profile.takes("raw") {
		t.checkTaken(t.newRequest().withKeys("?1"), false)
	}
	t.form(
		":"+base64.StdEncoding.EncodeToString([]byte(newKey()))+":",
		digits(15), "@"+digits(15), `%"caf%c3%a9 `+newKey()+`"`, `("`+newKey()+`" "b")`,
	)
}

// digits returns a random number of n digits that does not begin with zero.
func digits(n int) string {
	text := []byte(rand.Text() + rand.Text())[:n]
	for i := range text {
		text[i] = '1' + text[i]%9
	}
	return string(text)
}

func (t *caseRun) escapes() {
	k := newKey()
	t.mustProtect(t.newRequest().withKeys(`"` + k + `\"b"`))
	t.mustProtect(t.newRequest().withKeys(`"` + k + `\\b"`))
	for _, never := range []string{"\"" + k + "\x7f\"", "\"" + k + "é\"", "\"" + k + "\tb\""} {
		t.checkTaken(t.newRequest().withKeys(never), false)
	}
	for _, bad := range []string{`"` + k + `\x"`, `"` + k} {
		if t.profile.takes("string") {
			t.checkTaken(t.newRequest().withKeys(bad), false)
		} else {
			t.protectedOrRefused(t.newRequest().withKeys(bad))
		}
	}
}

func (t *caseRun) parameters() {
	k := newKey()
	a := t.newRequest().withKeys(quoted(k) + ";v=2")
	if !t.profile.takes("string") {
		t.mustProtect(a)
		t.mustProtect(t.newRequest().withKeys(quoted(k)))
		t.note("raw keys: another key")
		return
	}
	t.mustReplay(a.withKeys(quoted(k)), t.mustExecute(a))
	t.mustHappen(a.op, 1)
}

func (t *caseRun) twoLines() {
	a, b := t.keyLine(newKey()), t.keyLine(newKey())
	t.mustReject(t.newRequest().withKeys(a, b), invalidKeyCodes()...)
	t.mustReject(t.newRequest().withKeys(a, a), invalidKeyCodes()...)
}

func (t *caseRun) spaces() {
	k := newKey()
	a := t.newRequest().withKeys("  " + t.keyLine(k) + "  ")
	t.mustReplay(a.withKeys(t.keyLine(k)), t.mustExecute(a))
	t.mustHappen(a.op, 1)
	t.mustProtect(t.newRequest().withKeys(t.keyLine("k " + k)))
	t.mustProtect(t.newRequest().withKeys(t.keyLine("k" + k)))
}

func (t *caseRun) letterCase() {
	a := t.newRequest()
	first := t.mustExecute(a)
	for _, name := range []string{strings.ToUpper(t.profile.Header), strings.ToLower(t.profile.Header)} {
		again := a
		again.name = name
		t.mustReplay(again, first)
	}
	if over, ok := t.http2(a); ok {
		t.mustEqual(over[0], first)
	} else {
		t.note("the server does not speak HTTP/2")
	}
	t.mustHappen(a.op, 1)
	k := strings.ToLower(rand.Text())
	t.mustProtect(t.newRequest().withKeys(t.keyLine("x" + k)))
	t.mustProtect(t.newRequest().withKeys(t.keyLine("X" + k)))
}

// keyCases are about the keys that a server accepts.
func keyCases() []Case {
	return []Case{
		{
			ID: "10", Level: Security, Source: "draft 5", Fields: []string{"required"},
			Says: "An empty key is refused, and so is an empty header, because its sender expects protection.",
			run:  (*caseRun).emptyKeys,
		},
		{
			ID: "11", Level: Must, Source: in9651 + " 3.3.3", Fields: []string{"key.max_length"},
			Says: "Keys up to the published length are compared completely; longer ones are refused, never cut off.",
			run:  (*caseRun).longKeys,
		},
		{
			ID: "12", Level: Security, Source: "draft 5",
			Says: "A key is opaque: separators, escapes and markup in it have no meaning.", run: (*caseRun).opaqueKeys,
		},
		{
			ID: "13", Level: Promise, Source: "profile", Fields: []string{"key.forms", "key.same"},
			Says: "A key with and without quotes is one key or two, as the profile says.", run: (*caseRun).sameKey,
		},
	}
}

func (t *caseRun) emptyKeys() {
	t.mustReject(t.newRequest().withKeys(""), invalidKeyCodes()...)
	t.mustReject(t.newRequest().withKeys("   "), invalidKeyCodes()...)
	if t.profile.takes("string") {
		t.mustReject(t.newRequest().withKeys(`""`), invalidKeyCodes()...)
	}
}

func (t *caseRun) longKeys() {
	if t.profile.assumes("key.max_length") {
		t.observedLength()
	}
	limit := t.profile.Key.MaxLength
	k := newKey() + strings.Repeat("x", max(0, limit-37))
	if limit < 37 {
		t.notShown("key.max_length is %d, and the suite's keys have 37 characters", limit)
	}
	t.mustProtect(t.newRequest().withKeys(t.keyLine(k + "a")))
	t.mustProtect(t.newRequest().withKeys(t.keyLine(k + "b")))
	for _, tail := range []string{"a", "b"} {
		t.mustReject(t.newRequest().withKeys(t.keyLine(k+strings.Repeat("y", 45)+tail)), keyMalformed)
	}
}

// observedLength sends keys of growing length. A server may refuse any of them,
// but it must not treat two keys that differ in the last character as one key.
func (t *caseRun) observedLength() {
	seen := "keys of 2048 characters are compared completely"
	for _, length := range []int{64, 128, 255, 300, 1024, 2048} {
		k := newKey() + strings.Repeat("x", length-37)
		a := t.newRequest().withKeys(t.keyLine(k + "a"))
		got := t.send(a)
		if got.status > 299 {
			t.mustHappen(a.op, 0)
			seen = fmt.Sprintf("keys of %d characters are refused with %s", length, describe(got))
			break
		}
		t.mustReplay(a, got)
		t.mustHappen(a.op, 1)
		b := t.newRequest().withKeys(t.keyLine(k + "b"))
		if got := t.send(b); got.status > 299 {
			t.failf("of two keys of %d characters that differ in the last one, the first is accepted and the second is refused with %s", length, describe(got))
		}
		t.mustHappen(b.op, 1)
	}
	t.reportObserved("key.max_length", seen)
}

func (t *caseRun) opaqueKeys() {
	k := newKey()
	keys := []string{
		k + ":b", k + "::b", k + "|b", k + "/b", k + "{b}", k + "*", k + "%00", k + "%0d%0aX-Key: b", k + "'; DROP TABLE x",
		"../../" + k, k + "<b>", k + "$(b)", k + strings.Repeat("%", 100),
	}
	for _, key := range keys {
		if len(key) <= t.profile.Key.MaxLength {
			t.mustProtect(t.newRequest().withKeys(t.keyLine(key)))
		}
	}
	if t.profile.Suite.principals() < 2 {
		t.note("one principal: no collision across principals was tested")
		return
	}
	// The contract gives B a name with which a server that joins names with a
	// colon confuses the two keys.
	a := t.newRequest().withKeys(t.keyLine("x:" + k))
	t.mustExecute(a)
	t.mustExecute(a.withKeys(t.keyLine(k)).asPrincipal(principalB))
	t.mustHappen(a.op, 2)
}

func (t *caseRun) sameKey() {
	k := newKey()
	a := t.newRequest().withKeys(quoted(k))
	first := t.mustExecute(a)
	if t.profile.assumes("key.forms") || t.profile.assumes("key.same") {
		t.observedForms(a.withKeys(k), first)
	}
	switch both := t.profile.takes("string") && t.profile.takes("raw"); {
	case both && t.profile.Key.Same:
		t.mustReplay(a.withKeys(k), first)
		t.mustHappen(a.op, 1)
	case t.profile.takes("raw"):
		t.mustExecute(a.withKeys(k))
		t.mustHappen(a.op, 2)
	default:
		t.mustReject(a.withKeys(k), invalidKeyCodes()...)
	}
	t.note("%s", fmt.Sprintf("forms %q", t.profile.Key.Forms))
}

// observedForms sends without quotes a key that was used with quotes.
func (t *caseRun) observedForms(unquoted request, first *answer) {
	got := t.sendUntilSettled(unquoted)
	switch {
	case got.status > 299:
		t.mustHappen(unquoted.op, 1)
		t.reportObserved("key.same", "a key without quotes is refused with "+describe(got))
	case t.effectsOf(unquoted.op) == 1:
		t.mustEqual(got, first)
		t.reportObserved("key.same", "a key is the same with and without quotes")
	default:
		t.mustHappen(unquoted.op, 2)
		t.reportObserved("key.same", "a key with quotes and one without are two keys")
	}
}
