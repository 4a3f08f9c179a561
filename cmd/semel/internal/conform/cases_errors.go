package conform

import (
	"encoding/json"
	"mime"
	"net/http"
)

// errorCases are about the errors of the idempotency layer.
func errorCases() []Case {
	return []Case{
		{
			ID: "34", Level: Should, Source: "draft 2.7", Fields: []string{"statuses.key_reused", "problems"},
			Says: "A key with another payload is refused with 422, or the profile's status, and a link to documentation.",
			run:  (*caseRun).mismatch,
		},
		{
			ID: "35", Level: Should, Source: "draft 2.7", Fields: []string{"required", "statuses.key_missing", "problems"},
			Says: "A request without a required key is refused with 400 and a link to documentation.",
			run:  (*caseRun).missing,
		},
		{
			ID: "36", Level: Should, Source: "draft 2.7", Fields: []string{"in_progress", "statuses.in_progress"},
			needs: []string{offerBarrier},
			Says:  "A retry while the first request is in progress is refused with 409 and a Retry-After.", run: (*caseRun).comeBack,
		},
		{
			ID: "37", Level: Promise, Source: "RFC 9457", Fields: []string{"errors"},
			Says: "Errors have the form that the profile declares, and each kind has its own type.", run: (*caseRun).errorBodies,
		},
		{
			ID: "38", Level: Must, Source: "draft 2.7",
			Says: "A refused request is refused again until it is corrected, and runs then.",
			run:  (*caseRun).corrected,
		},
		{
			ID: "39", Level: Client, Source: "draft 2.7",
			Says: "A client retries with the same key and the same bytes, and does not retry a request that must be corrected.",
			run:  func(t *caseRun) { t.notShown("it is about clients") },
		},
	}
}

// documented fails unless got links to documentation.
func (t *caseRun) documented(got *answer) {
	switch {
	case t.documentationLink(got) != "":
	case t.profile.Errors == "stripe" || t.profile.Problems == "":
		t.note("by its profile the server sends no link")
	default:
		t.failf("%s has no link to its documentation", describe(got)) // the draft requires the link
	}
}

func (t *caseRun) mismatch() {
	a := t.newRequest()
	t.mustExecute(a)
	got := t.mustRefuse(a.withOtherPayload(), keyReused)
	t.documented(got)
	t.mustHappen(a.op, 1)
	if want := http.StatusUnprocessableEntity; got.status != want {
		t.note("the draft says %d, the profile says %d", want, got.status)
	}
	if !t.profile.Suite.offers(offerBarrier) {
		return
	}
	b := t.newRequest()
	t.hold(b.op)
	defer t.release(b.op)
	first := t.start(b)
	t.waitHeld(b.op)
	other := t.sendWhileHeld(b.withOtherPayload())
	if other.status < 400 {
		t.failf("another payload while the first request is in progress got %s", describe(other))
	}
	t.note("while the first request is in progress: %d", other.status)
	t.release(b.op)
	first()
	t.mustHappen(b.op, 1)
}

func (t *caseRun) missing() {
	a := t.newRequest().withKeys()
	if !t.profile.Required {
		t.mustExecute(a)
		t.mustExecute(a)
		t.mustHappen(a.op, 2)
		t.inform("the key is not required: two requests without a key are two requests")
	}
	got := t.send(a)
	if got.status <= 299 {
		t.mustHappen(a.op, 1)
		t.failUnlessAssumed("required", "a request without a key runs")
	}
	t.checkRefused(got, keyMissing)
	t.mustHappen(a.op, 0)
	t.documented(got)
}

func (t *caseRun) comeBack() {
	if t.profile.InProgress == "wait" {
		t.inform("by its profile the server lets retries wait")
	}
	a := t.newRequest()
	_, got := t.sendOverlapping(a)
	t.checkRefused(got, inProgress)
	if got.header.Get("Retry-After") == "" {
		t.failf("%s has no Retry-After", describe(got))
	}
	t.mustHappen(a.op, 1)
}

func (t *caseRun) errorBodies() {
	a := t.newRequest()
	t.mustExecute(a)
	seen := make(map[string]int)
	for _, got := range []*answer{t.send(a.withOtherPayload()), t.send(t.newRequest().withKeys(t.malformedKey()))} {
		switch {
		case got.status < 400: // other cases test this
		case t.profile.Errors == stripe:
			seen[t.stripeError(got)]++
		default:
			seen[t.problem(got)]++
		}
	}
	for kind, n := range seen {
		if n > 1 {
			t.failUnlessAssumed("errors", "errors of different kinds have the same type %q", kind)
		}
	}
	if len(seen) == 0 {
		t.notShown("no request was refused")
	}
}

// problem checks got against RFC 9457 and returns its type.
func (t *caseRun) problem(got *answer) string {
	media, _, err := mime.ParseMediaType(got.header.Get("Content-Type"))
	if err != nil || media != "application/problem+json" {
		t.failUnlessAssumed("errors", "%s has the media type %q", describe(got), got.header.Get("Content-Type"))
	}
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	if err := json.Unmarshal(got.body, &p); err != nil {
		t.failf("%s is not JSON: %v", describe(got), err)
	}
	if p.Title == "" || p.Status != 0 && p.Status != got.status {
		t.failUnlessAssumed("errors", "%s has the title %q and the status %d in its body", describe(got), p.Title, p.Status)
	}
	return p.Type
}

// stripeError checks the form of Stripe's errors and returns the error's type.
func (t *caseRun) stripeError(got *answer) string {
	var p struct {
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal(got.body, &p); err != nil || p.Error.Type == "" || p.Error.Message == "" {
		t.failf("%s is not an error with a type and a message", describe(got))
	}
	return p.Error.Type
}

func (t *caseRun) corrected() {
	a := t.newRequest()
	first := t.mustExecute(a)
	for range 2 {
		t.mustRefuseAnyhow(a.withOtherPayload())
	}
	t.mustReplay(a, first)
	t.mustHappen(a.op, 1)
	b := t.newRequest()
	bad := b.withKeys(t.malformedKey())
	if got := t.send(bad); got.status >= 400 {
		t.mustRefuseAnyhow(bad)
		t.mustProtect(b)
	}
	c := t.newRequest()
	if got := t.send(c.withKeys()); got.status >= 400 {
		t.mustProtect(c)
	}
}
