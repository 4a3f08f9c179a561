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

// syntaxCases are about the form of the header field.
func syntaxCases() []Case {
	return []Case{
		{
			ID: "1", Level: Must, Source: inDraft21, Fields: []string{"header"},
			Says: "A key in quotes is taken.", run: (*trial).quotedIsTaken,
		},
		{
			ID: "2", Level: Must, Source: inDraft21, Fields: []string{"key.forms"},
			Says: "A key without quotes is refused, or taken and protected, as the profile says; never run unprotected.",
			run:  func(t *trial) { t.form(fresh()) },
		},
		{
			ID: "3", Level: Must, Source: inDraft21, Fields: []string{"key.forms"},
			Says: "A key that is a token is treated as one without quotes.",
			run:  func(t *trial) { t.form("k" + strings.ToLower(rand.Text())) },
		},
		{
			ID: "4", Level: Must, Source: inDraft21, Fields: []string{"key.forms"},
			Says: "Items that are no strings (bytes, numbers, booleans, dates, display strings, lists) are refused, or taken as raw keys.",
			run:  (*trial).otherItems,
		},
		{
			ID: "5", Level: Must, Source: in9651 + " 4.2.5", Fields: []string{"key.forms"},
			Says: "Escaped quotes and backslashes are taken; other escapes, open strings, control and non-ASCII characters are not.",
			run:  (*trial).escapes,
		},
		{
			ID: "6", Level: Must, Source: in9651 + " 3.1.2", Fields: []string{"key.forms"},
			Says: "Parameters after the string do not change the key.", run: (*trial).parameters,
		},
		{
			ID: "7", Level: Must, Source: in9651 + " 3.3",
			Says: "Two header lines, different or the same, are refused.", run: (*trial).twoLines,
		},
		{
			ID: "8", Level: Must, Source: in9651 + " 4.2",
			Says: "Spaces around a key are nothing, spaces inside it are part of it.", run: (*trial).spaces,
		},
		{
			ID: "9", Level: Must, Source: "RFC 9110 5.1",
			Says: "The header's name has no case, over HTTP/1.1 and HTTP/2; the key has.", run: (*trial).letterCase,
		},
	}
}

func (t *trial) quotedIsTaken() { t.protected(t.asking().with(quoted(fresh()))) }

// form sends keys without quotes, and reports what was seen if the profile says nothing of
// them.
func (t *trial) form(keys ...string) {
	var seen []string
	for _, key := range keys {
		if what := t.unquoted(t.asking().with(key)); what != "" {
			seen = append(seen, what)
		}
	}
	if len(seen) > 0 {
		t.observed("key.forms", seen...)
	}
}

func (t *trial) otherItems() {
	if !t.profile.takes("raw") {
		t.heldTo(t.asking().with("?1"), false)
	}
	t.form(
		":"+base64.StdEncoding.EncodeToString([]byte(fresh()))+":",
		digits(15), "@"+digits(15), `%"caf%c3%a9 `+fresh()+`"`, `("`+fresh()+`" "b")`,
	)
}

// digits draws a number of n digits that does not begin with zero.
func digits(n int) string {
	text := []byte(rand.Text() + rand.Text())[:n]
	for i := range text {
		text[i] = '1' + text[i]%9
	}
	return string(text)
}

func (t *trial) escapes() {
	k := fresh()
	t.protected(t.asking().with(`"` + k + `\"b"`))
	t.protected(t.asking().with(`"` + k + `\\b"`))
	for _, never := range []string{"\"" + k + "\x7f\"", "\"" + k + "é\"", "\"" + k + "\tb\""} {
		t.heldTo(t.asking().with(never), false)
	}
	for _, bad := range []string{`"` + k + `\x"`, `"` + k} {
		if t.profile.takes("string") {
			t.heldTo(t.asking().with(bad), false)
		} else {
			t.either(t.asking().with(bad))
		}
	}
}

func (t *trial) parameters() {
	k := fresh()
	a := t.asking().with(quoted(k) + ";v=2")
	if !t.profile.takes("string") {
		t.protected(a)
		t.protected(t.asking().with(quoted(k)))
		t.note("raw keys: another key")
		return
	}
	t.replays(a.with(quoted(k)), t.executes(a))
	t.happened(a.op, 1)
}

func (t *trial) twoLines() {
	a, b := t.line(fresh()), t.line(fresh())
	t.rejected(t.asking().with(a, b), refusedKey()...)
	t.rejected(t.asking().with(a, a), refusedKey()...)
}

func (t *trial) spaces() {
	k := fresh()
	a := t.asking().with("  " + t.line(k) + "  ")
	t.replays(a.with(t.line(k)), t.executes(a))
	t.happened(a.op, 1)
	t.protected(t.asking().with(t.line("k " + k)))
	t.protected(t.asking().with(t.line("k" + k)))
}

func (t *trial) letterCase() {
	a := t.asking()
	first := t.executes(a)
	for _, name := range []string{strings.ToUpper(t.profile.Header), strings.ToLower(t.profile.Header)} {
		again := a
		again.name = name
		t.replays(again, first)
	}
	if over, ok := t.http2(a); ok {
		t.equal(over[0], first)
	} else {
		t.note("HTTP/2 is not spoken")
	}
	t.happened(a.op, 1)
	k := strings.ToLower(rand.Text())
	t.protected(t.asking().with(t.line("x" + k)))
	t.protected(t.asking().with(t.line("X" + k)))
}

// keyCases are about which keys are taken.
func keyCases() []Case {
	return []Case{
		{
			ID: "10", Level: Security, Source: "draft 5", Fields: []string{"required"},
			Says: "An empty key is refused, and so is an empty header: its sender believes to be protected.",
			run:  (*trial).emptyKeys,
		},
		{
			ID: "11", Level: Must, Source: in9651 + " 3.3.3", Fields: []string{"key.max_length"},
			Says: "Keys up to the published length are told apart to the last character; longer ones are refused, never cut off.",
			run:  (*trial).longKeys,
		},
		{
			ID: "12", Level: Security, Source: "draft 5",
			Says: "A key is opaque: separators, escapes and markup in it mean nothing.", run: (*trial).opaqueKeys,
		},
		{
			ID: "13", Level: Promise, Source: "profile", Fields: []string{"key.forms", "key.same"},
			Says: "A key with and without quotes is the same, or is not, as the profile says.", run: (*trial).sameKey,
		},
	}
}

func (t *trial) emptyKeys() {
	t.rejected(t.asking().with(""), refusedKey()...)
	t.rejected(t.asking().with("   "), refusedKey()...)
	if t.profile.takes("string") {
		t.rejected(t.asking().with(`""`), refusedKey()...)
	}
}

func (t *trial) longKeys() {
	if t.profile.assumes("key.max_length") {
		t.observedLength()
	}
	limit := t.profile.Key.MaxLength
	k := fresh() + strings.Repeat("x", max(0, limit-37))
	if limit < 37 {
		t.notShown("key.max_length is %d, and the suite's keys have 37 characters", limit)
	}
	t.protected(t.asking().with(t.line(k + "a")))
	t.protected(t.asking().with(t.line(k + "b")))
	for _, tail := range []string{"a", "b"} {
		t.rejected(t.asking().with(t.line(k+strings.Repeat("y", 45)+tail)), keyMalformed)
	}
}

// observedLength sends keys of growing length. A server may refuse any of them, and may not
// take two that differ in the last character alone for one.
func (t *trial) observedLength() {
	seen := "keys of 2048 characters are told apart to the last one"
	for _, length := range []int{64, 128, 255, 300, 1024, 2048} {
		k := fresh() + strings.Repeat("x", length-37)
		a := t.asking().with(t.line(k + "a"))
		got := t.send(a)
		if got.status > 299 {
			t.happened(a.op, 0)
			seen = fmt.Sprintf("keys of %d characters are refused with %s", length, shown(got))
			break
		}
		t.replays(a, got)
		t.happened(a.op, 1)
		b := t.asking().with(t.line(k + "b"))
		if got := t.send(b); got.status > 299 {
			t.failf("of two keys of %d characters that differ in the last one, the first is taken and the second is refused with %s", length, shown(got))
		}
		t.happened(b.op, 1)
	}
	t.observed("key.max_length", seen)
}

func (t *trial) opaqueKeys() {
	k := fresh()
	keys := []string{
		k + ":b", k + "::b", k + "|b", k + "/b", k + "{b}", k + "*", k + "%00", k + "%0d%0aX-Key: b", k + "'; DROP TABLE x",
		"../../" + k, k + "<b>", k + "$(b)", k + strings.Repeat("%", 100),
	}
	for _, key := range keys {
		if len(key) <= t.profile.Key.MaxLength {
			t.protected(t.asking().with(t.line(key)))
		}
	}
	if t.profile.Suite.principals() < 2 {
		t.note("one principal: no collision across principals was tried")
		return
	}
	// The contract names B so that who joins names with a colon sees one key.
	a := t.asking().with(t.line("x:" + k))
	t.executes(a)
	t.executes(a.with(t.line(k)).as(principalB))
	t.happened(a.op, 2)
}

func (t *trial) sameKey() {
	k := fresh()
	a := t.asking().with(quoted(k))
	first := t.executes(a)
	if t.profile.assumes("key.forms") || t.profile.assumes("key.same") {
		t.observedForms(a.with(k), first)
	}
	switch both := t.profile.takes("string") && t.profile.takes("raw"); {
	case both && t.profile.Key.Same:
		t.replays(a.with(k), first)
		t.happened(a.op, 1)
	case t.profile.takes("raw"):
		t.executes(a.with(k))
		t.happened(a.op, 2)
	default:
		t.rejected(a.with(k), refusedKey()...)
	}
	t.note("%s", fmt.Sprintf("forms %q", t.profile.Key.Forms))
}

// observedForms sends a key without quotes that was used with quotes.
func (t *trial) observedForms(unquoted ask, first *answer) {
	got := t.settled(unquoted)
	switch {
	case got.status > 299:
		t.happened(unquoted.op, 1)
		t.observed("key.same", "a key without quotes is refused with "+shown(got))
	case t.count(unquoted.op) == 1:
		t.equal(got, first)
		t.observed("key.same", "a key is the same with and without quotes")
	default:
		t.happened(unquoted.op, 2)
		t.observed("key.same", "a key with quotes and one without are two keys")
	}
}
