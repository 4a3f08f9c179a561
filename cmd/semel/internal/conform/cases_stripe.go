package conform

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

const stripe = "stripe"

// stripeCases are what Stripe's first API promises, for servers that follow it.
func stripeCases() []Case {
	cases := []Case{
		{ID: "S1", Level: Promise, Says: "A raw key of up to 255 characters is taken, a longer one is 400.", run: (*trial).rawKeys},
		{ID: "S2", Level: Promise, Says: "Every POST takes a key; on GET it has no effect.", run: (*trial).keyOnGet},
		{
			ID: "S3", Level: Promise, needs: []string{offerFixture}, run: (*trial).storedErrors,
			Says: "The same key and parameters get the same status and body, a 500 included, once the endpoint began to execute.",
		},
		{ID: "S4", Level: Promise, Says: "A replay has Idempotent-Replayed: true.", run: (*trial).stripeMarker},
		{
			ID: "S5", Level: Promise, needs: []string{offerFixture, offerBarrier}, run: (*trial).neverStored,
			Says: "What fails validation, is not authenticated, is rate limited or meets a request that runs is not stored.",
		},
		{
			ID: "S6", Level: Promise, Says: "Other parameters are 400 with the type idempotency_error.",
			run: func(t *trial) { t.idempotencyError(ask.other, "same parameters") },
		},
		{
			ID: "S7", Level: Promise, needs: []string{offerFixture}, Says: "Another endpoint is 400 with the type idempotency_error.",
			run: func(t *trial) { t.idempotencyError(elsewhere, "same endpoint") },
		},
		{
			ID: "S8", Level: Promise, needs: []string{offerBarrier}, run: (*trial).keyInUse,
			Says: "A request while the first runs is 409 idempotency_key_in_use and may be repeated.",
		},
		{
			ID: "S9", Level: Promise, needs: []string{offerClock}, alone: true, run: (*trial).aDay,
			Says: "Keys are kept for at least 24 hours; after that the request runs as a new one.",
		},
		{ID: "S10", Level: Client, Says: "After correcting a 400 a client uses a new key.", run: aboutClients},
		{
			ID: "S11", Level: Promise, Says: "Stripe-Should-Retry says whether to repeat.", run: (*trial).shouldRetry,
			needs: []string{offerBarrier},
		},
		{ID: "S12", Level: Promise, Says: "What succeeded is never done again.", run: func(t *trial) { t.protected(t.asking()) }},
		{ID: "S13", Level: Client, Says: "A client puts nothing personal into a key.", run: aboutClients},
	}
	for i := range cases {
		cases[i].profile, cases[i].Source = stripe, "Stripe API v1"
	}
	return cases
}

func aboutClients(t *trial) { t.notShown("it speaks of clients") }

func (t *trial) rawKeys() {
	k := fresh()
	k += strings.Repeat("x", 255-len(k))
	t.protected(t.asking().with(k))
	t.rejected(t.asking().with(k+"x"), keyMalformed)
}

func (t *trial) stripeMarker() {
	if name, value := t.profile.ReplayHeader, t.profile.ReplayValue; !strings.EqualFold(name, "Idempotent-Replayed") || value != "true" {
		t.failf("replays are marked with %q: %q, by profile", name, value)
	}
	t.marker()
}

func (t *trial) aDay() {
	if day := 24 * time.Hour; t.profile.retention() < day {
		t.failf("keys are kept for %v, by profile", t.profile.retention())
	}
	t.kept(false)
}

func (t *trial) storedErrors() {
	a := t.asking()
	a.script = &script{Status: http.StatusInternalServerError, Once: true}
	first := t.send(a)
	if first.status != http.StatusInternalServerError {
		t.failf("the fixture answers %s, the script says 500", shown(first))
	}
	n := t.count(a.op)
	if got := t.repeats(a, first); !t.marked(got) {
		t.failf("the second 500 is not marked as a replay")
	}
	t.happened(a.op, n)
}

func (t *trial) neverStored() {
	a := t.asking()
	bad := a
	bad.body = []byte(`{"op":`)
	if got := t.send(bad); got.status != http.StatusBadRequest {
		t.failf("a body that is no JSON is answered %s", shown(got))
	}
	t.protected(a)
	t.withoutPrincipal()
	t.noForNow(http.StatusTooManyRequests)
	t.ownErrors()
}

// elsewhere is a at another endpoint.
func elsewhere(a ask) ask {
	a.method, a.resource = http.MethodPatch, "1"
	return a
}

func (t *trial) idempotencyError(changed func(ask) ask, about string) {
	a := t.asking()
	t.executes(a)
	got := t.rejected(changed(a), keyReused)
	var body struct {
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal(got.body, &body); err != nil || body.Error.Type != "idempotency_error" {
		t.failf("it is answered %s, want the type idempotency_error", shown(got))
	}
	if got.status != http.StatusBadRequest || !strings.Contains(body.Error.Message, about) {
		t.failf("it is answered %d with the message %q", got.status, body.Error.Message)
	}
}

func (t *trial) keyInUse() {
	a := t.asking()
	t.hold(a.op)
	defer t.release(a.op)
	first := t.later(a)
	t.held(a.op)
	got := t.send(a)
	t.release(a.op)
	t.replays(a, first())
	if got.status != http.StatusConflict || codeIn(got) != "idempotency_key_in_use" {
		t.failf("it is answered %s", shown(got))
	}
}

func (t *trial) shouldRetry() {
	a := t.asking()
	t.hold(a.op)
	defer t.release(a.op)
	first := t.later(a)
	t.held(a.op)
	running, malformed := t.send(a), t.send(t.asking().with(t.malformed()))
	t.release(a.op)
	first()
	if got := running.header.Get("Stripe-Should-Retry"); got != "true" {
		t.failf("a request while the first runs has Stripe-Should-Retry: %s", got)
	}
	if malformed.header.Get("Stripe-Should-Retry") == "true" {
		t.failf("a malformed key has Stripe-Should-Retry: true")
	}
	if t.send(a.other()).header.Get("Stripe-Should-Retry") == "true" {
		t.failf("a key with other parameters has Stripe-Should-Retry: true")
	}
}
