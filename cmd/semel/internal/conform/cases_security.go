package conform

import (
	"net/http"
	"strings"
)

// securityCases are about data that must not be stored, shown, or given to
// other principals.
func securityCases() []Case {
	return []Case{
		{
			ID: "40", Level: Security, Source: "practice", Fields: []string{"never_stored"},
			Says: "A refusal before the operation, or a temporary one, does not use up the key: 401, 403, 404, 413, 415, 429.",
			run:  (*caseRun).refusalsKeepKey,
		},
		{
			ID: "41", Level: Security, Source: "practice",
			Says: "Errors of the idempotency layer itself are never stored.", run: (*caseRun).ownErrors,
		},
		{
			ID: "42", Level: Security, Source: "draft 5", Fields: []string{"scope"},
			Says: "A principal that guesses another principal's key learns neither the answer nor that the key was used.",
			run:  (*caseRun).guessedKey,
		},
		{
			ID: "43", Level: Security, Source: "draft 5", needs: []string{offerStore}, alone: true,
			Says: "A key is validated before the store is used: a malformed key is 400 while the store is down.",
			run:  (*caseRun).validatedFirst,
		},
		{
			ID: "44", Level: Promise, Source: "profile", Fields: []string{"reauthorizes"}, needs: []string{offerPermit},
			Says: "A principal that has lost its permission gets 403 and not the stored answer.", run: (*caseRun).revoked,
		},
		{
			ID: "45", Level: Security, Source: "practice",
			Says: "A replay has no Set-Cookie, no old Date, and no other headers of the first exchange.",
			run:  (*caseRun).oldHeaders,
		},
		{
			ID: "46", Level: Promise, Source: "profile", Fields: []string{"replay_header", "replay_value"},
			Says: "The replay marker is on replays, and on nothing else.", run: (*caseRun).marker,
		},
	}
}

func (t *caseRun) refusalsKeepKey() {
	t.withoutPrincipal()
	if !t.profile.Suite.offers(offerFixture) {
		t.note("401 alone")
		return
	}
	for _, status := range []int{http.StatusForbidden, http.StatusTooManyRequests, http.StatusLocked} {
		t.transientRefusal(status)
	}
	a := t.newRequest()
	lost := a
	lost.resource = "no/such/route"
	if got := t.send(lost); got.status != http.StatusNotFound && got.status != http.StatusMethodNotAllowed {
		t.failf("an unknown route got %s", describe(got))
	}
	typed := a
	typed.media = "application/x-none"
	if got := t.send(typed); got.status != http.StatusUnsupportedMediaType {
		t.failf("an unknown media type got %s", describe(got))
	}
	large := a
	large.body = []byte(`{"op":"` + a.op + `","n":1,"x":"` + strings.Repeat("x", 1<<20) + `"}`)
	if got := t.send(large); got.status != t.profile.Statuses[bodyTooLarge] {
		t.failf("a body of more than 1 MiB got %s", describe(got))
	}
	t.mustHappen(a.op, 0)
	t.mustProtect(a)
}

// withoutPrincipal sends a request without credentials, and then with
// credentials and the same key.
func (t *caseRun) withoutPrincipal() {
	if t.profile.Suite.principals() == 0 {
		t.note("no principals: 401 was not tested")
		return
	}
	a := t.newRequest()
	got := t.send(a.asPrincipal(noPrincipal))
	if got.status <= 299 {
		t.mustHappen(a.op, 1)
		t.inform("a request without credentials runs")
	}
	t.checkRefused(got, unauthenticated)
	t.mustHappen(a.op, 0)
	again := t.sendUntilSettled(a)
	if again.status > 299 {
		t.failf("the refusal of a request without credentials was stored: the same key with credentials got %s", describe(again))
	}
	t.mustReplay(a, again)
	t.mustHappen(a.op, 1)
}

// transientRefusal makes the operation refuse once with a status that must not
// be stored.
func (t *caseRun) transientRefusal(status int) {
	if t.profile.stores(status) {
		t.note("%d is stored, by its profile", status)
		return
	}
	a := t.newRequest()
	a.script = &script{Status: status, Fail: failBefore, Once: true}
	if got := t.send(a); got.status != status {
		t.failf("the fixture answers %s, the script has %d", describe(got), status)
	}
	if got := t.sendUntilSettled(a); got.status > 299 {
		t.failUnlessAssumed("never_stored", "after a %d the retry got %s", status, describe(got))
	}
	t.mustHappen(a.op, 1)
}

func (t *caseRun) ownErrors() {
	a := t.newRequest()
	first := t.mustExecute(a)
	t.send(a.withOtherPayload())
	t.mustReplay(a, first)
	if !t.profile.Suite.offers(offerBarrier) || t.profile.InProgress == "wait" {
		t.note("without a refusal of a request in progress")
		return
	}
	b := t.newRequest()
	running, _ := t.sendOverlapping(b)
	t.mustReplay(b, running)
	t.mustHappen(b.op, 1)
}

func (t *caseRun) validatedFirst() {
	a := t.newRequest()
	t.setStore(false)
	defer t.setStore(true)
	t.mustRefuse(a.withKeys(t.malformedKey()), invalidKeyCodes()...)
	t.setStore(true)
	t.mustHappen(a.op, 0)
}

func (t *caseRun) revoked() {
	if !t.profile.Reauthorizes {
		t.inform("by its profile the server does not check permissions again")
	}
	a := t.newRequest()
	first := t.mustExecute(a)
	t.permit(a.op, false)
	got := t.send(a)
	if got.status != t.profile.Statuses[forbidden] || string(got.body) == string(first.body) {
		t.failf("a principal without permission got %s", describe(got))
	}
	t.permit(a.op, true)
	t.mustReplay(a, first)
	t.mustHappen(a.op, 1)
}

func (t *caseRun) permit(op string, allowed bool) {
	_, err := t.control(t.ctx, "/permit/"+op, map[string]bool{"allowed": allowed})
	t.must(err)
}

func (t *caseRun) marker() {
	if t.profile.ReplayHeader == "" {
		t.inform("by its profile the server does not mark replays")
	}
	a := t.newRequest()
	first := t.mustExecute(a)
	if t.isReplay(first) {
		t.failf("the first answer is marked as a replay")
	}
	got := t.mustReplay(a, first)
	if !t.isReplay(got) {
		t.failUnlessAssumed("replay_header", "the replay has no %s: %s", t.profile.ReplayHeader, t.profile.ReplayValue)
	}
	if refused := t.send(a.withOtherPayload()); refused.status >= 400 && len(refused.header.Values(t.profile.ReplayHeader)) > 0 {
		t.failf("a refusal is marked as a replay")
	}
	a.more = []line{{"Origin", "https://other.example"}}
	cors := t.send(a).header
	exposed := strings.Contains(strings.ToLower(cors.Get("Access-Control-Expose-Headers")), strings.ToLower(t.profile.ReplayHeader))
	if cors.Get("Access-Control-Allow-Origin") != "" && !exposed {
		t.failf("scripts of other origins cannot see %s", t.profile.ReplayHeader)
	}
}
