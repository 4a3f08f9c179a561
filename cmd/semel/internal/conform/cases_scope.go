package conform

import (
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// scopeCases are about the scope in which a key is unique.
func scopeCases() []Case {
	return []Case{
		{
			ID: "14", Level: Must, Source: "draft 2.2",
			Says: "A used key does not run again with another payload.", run: (*caseRun).otherPayload,
		},
		{
			ID: "15", Level: Must, Source: "draft 2.2", Fields: []string{"scope"},
			Says: "The same key from two principals is two keys or one, as the profile says; answers are never shared across scopes.",
			run:  (*caseRun).twoPrincipals,
		},
		{
			ID: "16", Level: Promise, Source: "profile", Fields: []string{"other_operation"}, needs: []string{offerFixture},
			Says: "The same key on another route, method or resource is independent, or refused, and never answered with the other's response.",
			run:  (*caseRun).otherRoute,
		},
		{
			ID: "17", Level: Should, Source: "draft 2.2",
			Says: "The usual kinds of random keys are accepted: UUIDv4, UUIDv7, ULID, nanoid, 32 letters.", run: (*caseRun).keyKinds,
		},
	}
}

func (t *caseRun) otherPayload() {
	a := t.newRequest()
	first := t.mustExecute(a)
	got := t.send(a.withOtherPayload())
	if got.status < 400 {
		t.failf("the other payload got %s", describe(got))
	}
	t.mustHappen(a.op, 1)
	t.mustReplay(a, first)
	t.mustHappen(a.op, 1)
}

func (t *caseRun) twoPrincipals() {
	if t.profile.Suite.principals() < 2 {
		t.notShown("it takes two principals, and suite.principals has %d", t.profile.Suite.principals())
	}
	a := t.newRequest()
	first := t.mustExecute(a)
	if t.profile.Scope == "shared" {
		t.mustReplay(a.asPrincipal(principalB), first)
		t.mustHappen(a.op, 1)
		return
	}
	second := t.send(a.asPrincipal(principalB))
	if second.status > 299 {
		t.failUnlessAssumed("scope", "the other principal got %s", describe(second))
	}
	if string(second.body) == string(first.body) && len(first.body) > 0 && t.profile.Suite.Endpoint == nil {
		t.failf("both principals got the same answer")
	}
	t.mustHappen(a.op, 2)
}

func (t *caseRun) otherRoute() {
	a := t.newRequest()
	first := t.mustExecute(a)
	patch := a
	patch.method, patch.resource = http.MethodPatch, "1"
	if t.profile.OtherOperation == "mismatch" {
		t.mustReject(patch, keyReused)
		return
	}
	second := t.send(patch)
	if second.status > 299 {
		t.mustHappen(a.op, 1)
		t.failUnlessAssumed("other_operation", "the other route got %s", describe(second))
	}
	if string(first.body) == string(second.body) {
		t.failf("the other route got the first one's response")
	}
	t.mustHappen(a.op, 2)
	patch.resource = "2"
	if got := t.send(patch); got.status < 400 {
		if string(got.body) == string(second.body) {
			t.failf("the other resource got the first one's response")
		}
		t.mustHappen(a.op, 3)
	}
}

func (t *caseRun) keyKinds() {
	v7, err := uuid.NewV7()
	if err != nil {
		t.failf("draw a key: %v", err)
	}
	kinds := []string{
		uuid.NewString(), v7.String(), ulid(v7), rand.Text()[:21], strings.Map(letter, v7.String()),
	}
	for _, key := range kinds {
		t.mustProtect(t.newRequest().withKeys(t.keyLine(key)))
	}
}

// ulid formats the 128 bits of a UUID as a ULID. Both formats begin with the
// time.
func ulid(id uuid.UUID) string {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	var text [26]byte
	var bits, have uint
	next := len(id) - 1
	for i := len(text) - 1; i >= 0; i-- {
		if have < 5 && next >= 0 {
			bits |= uint(id[next]) << have
			have += 8
			next--
		}
		text[i] = digits[bits&31]
		bits >>= 5
		have -= min(have, 5)
	}
	return string(text[:])
}

// letter maps the characters of a UUID to lower-case letters.
func letter(r rune) rune {
	switch {
	case r == '-':
		return -1
	case r <= '9':
		return 'k' + r - '0'
	default:
		return r
	}
}
