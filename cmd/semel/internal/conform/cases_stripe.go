package conform

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

const stripe = "stripe"

// stripeCases are the promises of Stripe's first API, for servers that follow
// it.
func stripeCases() []Case {
	cases := []Case{
		{ID: "S1", Level: Promise, Says: "A raw key of up to 255 characters is accepted, a longer one is 400.", run: (*caseRun).rawKeys},
		{ID: "S2", Level: Promise, Says: "Every POST takes a key; on GET it has no effect.", run: (*caseRun).keyOnGet},
		{
			ID: "S3", Level: Promise, needs: []string{offerFixture}, run: (*caseRun).storedErrors,
			Says: "The same key and parameters get the same status and body, including a 500, after the endpoint began to execute.",
		},
		{ID: "S4", Level: Promise, Says: "A replay has Idempotent-Replayed: true.", run: (*caseRun).stripeMarker},
		{
			ID: "S5", Level: Promise, needs: []string{offerFixture, offerBarrier}, run: (*caseRun).neverStored,
			Says: "Answers about validation, authentication, rate limits and requests in progress are not stored.",
		},
		{
			ID: "S6", Level: Promise, Says: "Other parameters are 400 with the type idempotency_error.",
			run: func(t *caseRun) { t.idempotencyError(request.withOtherPayload, "same parameters") },
		},
		{
			ID: "S7", Level: Promise, needs: []string{offerFixture}, Says: "Another endpoint is 400 with the type idempotency_error.",
			run: func(t *caseRun) { t.idempotencyError(atOtherEndpoint, "same endpoint") },
		},
		{
			ID: "S8", Level: Promise, needs: []string{offerBarrier}, run: (*caseRun).keyInUse,
			Says: "A request while the first one is in progress is 409 idempotency_key_in_use and may be retried.",
		},
		{
			ID: "S9", Level: Promise, needs: []string{offerClock}, alone: true, run: (*caseRun).keptForADay,
			Says: "Keys are kept for at least 24 hours; after that the request runs as a new one.",
		},
		{ID: "S10", Level: Client, Says: "After correcting a 400 a client uses a new key.", run: aboutClients},
		{
			ID: "S11", Level: Promise, Says: "Stripe-Should-Retry says whether to retry.", run: (*caseRun).shouldRetry,
			needs: []string{offerBarrier},
		},
		{ID: "S12", Level: Promise, Says: "A successful request never runs again.", run: func(t *caseRun) { t.mustProtect(t.newRequest()) }},
		{ID: "S13", Level: Client, Says: "A client puts no personal data into a key.", run: aboutClients},
	}
	for i := range cases {
		cases[i].profile, cases[i].Source = stripe, "Stripe API v1"
	}
	return cases
}

func aboutClients(t *caseRun) { t.notShown("it is about clients") }

func (t *caseRun) rawKeys() {
	k := newKey()
	k += strings.Repeat("x", 255-len(k))
	t.mustProtect(t.newRequest().withKeys(k))
	t.mustReject(t.newRequest().withKeys(k+"x"), keyMalformed)
}

func (t *caseRun) stripeMarker() {
	if name, value := t.profile.ReplayHeader, t.profile.ReplayValue; !strings.EqualFold(name, "Idempotent-Replayed") || value != "true" {
		t.failf("by its profile the server marks replays with %q: %q", name, value)
	}
	t.marker()
}

func (t *caseRun) keptForADay() {
	if day := 24 * time.Hour; t.profile.retention() < day {
		t.failf("by its profile the server keeps keys for %v", t.profile.retention())
	}
	t.checkRetention(false)
}

func (t *caseRun) storedErrors() {
	a := t.newRequest()
	a.script = &script{Status: http.StatusInternalServerError, Once: true}
	first := t.send(a)
	if first.status != http.StatusInternalServerError {
		t.failf("the fixture answers %s, the script has 500", describe(first))
	}
	n := t.effectsOf(a.op)
	if got := t.mustRepeat(a, first); !t.isReplay(got) {
		t.failf("the second 500 is not marked as a replay")
	}
	t.mustHappen(a.op, n)
}

func (t *caseRun) neverStored() {
	a := t.newRequest()
	bad := a
	bad.body = []byte(`{"op":`)
	if got := t.send(bad); got.status != http.StatusBadRequest {
		t.failf("a body that is not JSON got %s", describe(got))
	}
	t.mustProtect(a)
	t.withoutPrincipal()
	t.transientRefusal(http.StatusTooManyRequests)
	t.ownErrors()
}

// atOtherEndpoint returns a, sent to another endpoint.
func atOtherEndpoint(a request) request {
	a.method, a.resource = http.MethodPatch, "1"
	return a
}

func (t *caseRun) idempotencyError(changed func(request) request, about string) {
	a := t.newRequest()
	t.mustExecute(a)
	got := t.mustReject(changed(a), keyReused)
	var body struct {
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal(got.body, &body); err != nil || body.Error.Type != "idempotency_error" {
		t.failf("the answer is %s, want the type idempotency_error", describe(got))
	}
	if got.status != http.StatusBadRequest || !strings.Contains(body.Error.Message, about) {
		t.failf("the answer is %d with the message %q", got.status, body.Error.Message)
	}
}

func (t *caseRun) keyInUse() {
	a := t.newRequest()
	t.hold(a.op)
	defer t.release(a.op)
	first := t.start(a)
	t.waitHeld(a.op)
	got := t.send(a)
	t.release(a.op)
	t.mustReplay(a, first())
	if got.status != http.StatusConflict || errorCode(got) != "idempotency_key_in_use" {
		t.failf("the answer is %s", describe(got))
	}
}

func (t *caseRun) shouldRetry() {
	a := t.newRequest()
	t.hold(a.op)
	defer t.release(a.op)
	first := t.start(a)
	t.waitHeld(a.op)
	running, malformed := t.send(a), t.send(t.newRequest().withKeys(t.malformedKey()))
	t.release(a.op)
	first()
	if got := running.header.Get("Stripe-Should-Retry"); got != "true" {
		t.failf("a request while the first one is in progress has Stripe-Should-Retry: %s", got)
	}
	if malformed.header.Get("Stripe-Should-Retry") == "true" {
		t.failf("a malformed key has Stripe-Should-Retry: true")
	}
	if t.send(a.withOtherPayload()).header.Get("Stripe-Should-Retry") == "true" {
		t.failf("a key with other parameters has Stripe-Should-Retry: true")
	}
}
