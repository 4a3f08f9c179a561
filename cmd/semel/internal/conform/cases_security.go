package conform

import (
	"net/http"
	"strings"
)

// securityCases are about what must not be kept, shown, or given to others.
func securityCases() []Case {
	return []Case{
		{
			ID: "40", Level: Security, Source: "practice", Fields: []string{"never_stored"},
			Says: "What is refused before the operation, and what is no for now, uses no key up: 401, 403, 404, 413, 415, 429.",
			run:  (*trial).notUsedUp,
		},
		{
			ID: "41", Level: Security, Source: "practice",
			Says: "Errors of the idempotency layer itself are never stored.", run: (*trial).ownErrors,
		},
		{
			ID: "42", Level: Security, Source: "draft 5", Fields: []string{"scope"},
			Says: "A principal who guesses another's key learns nothing: neither the answer nor that the key was used.",
			run:  (*trial).probing,
		},
		{
			ID: "43", Level: Security, Source: "draft 5", needs: []string{offerStore}, alone: true,
			Says: "A key is looked at before anything is looked up: a malformed one is 400 while the store is down.",
			run:  (*trial).validatedFirst,
		},
		{
			ID: "44", Level: Promise, Source: "profile", Fields: []string{"reauthorizes"}, needs: []string{offerPermit},
			Says: "Who is no longer allowed gets 403 and not the stored answer.", run: (*trial).revoked,
		},
		{
			ID: "45", Level: Security, Source: "practice",
			Says: "A replay has no Set-Cookie, no old Date, and no headers that belonged to the first exchange.",
			run:  (*trial).oldHeaders,
		},
		{
			ID: "46", Level: Promise, Source: "profile", Fields: []string{"replay_header", "replay_value"},
			Says: "The replay marker is on replays, and on nothing else.", run: (*trial).marker,
		},
	}
}

func (t *trial) notUsedUp() {
	t.withoutPrincipal()
	if !t.profile.Suite.offers(offerFixture) {
		t.note("401 alone")
		return
	}
	for _, status := range []int{http.StatusForbidden, http.StatusTooManyRequests, http.StatusLocked} {
		t.noForNow(status)
	}
	a := t.asking()
	lost := a
	lost.resource = "no/such/route"
	if got := t.send(lost); got.status != http.StatusNotFound && got.status != http.StatusMethodNotAllowed {
		t.failf("a route that is none is answered %s", shown(got))
	}
	typed := a
	typed.media = "application/x-none"
	if got := t.send(typed); got.status != http.StatusUnsupportedMediaType {
		t.failf("a media type that is none is answered %s", shown(got))
	}
	large := a
	large.body = []byte(`{"op":"` + a.op + `","n":1,"x":"` + strings.Repeat("x", 1<<20) + `"}`)
	if got := t.send(large); got.status != t.profile.Statuses[bodyTooLarge] {
		t.failf("a body of more than 1 MiB is answered %s", shown(got))
	}
	t.happened(a.op, 0)
	t.protected(a)
}

// withoutPrincipal asks as nobody, and then with the same key as somebody.
func (t *trial) withoutPrincipal() {
	if t.profile.Suite.principals() == 0 {
		t.note("no principals: 401 was not tried")
		return
	}
	a := t.asking()
	got := t.send(a.as(nobody))
	if got.status <= 299 {
		t.happened(a.op, 1)
		t.inform("a request without credentials runs")
	}
	t.isRefused(got, unauthenticated)
	t.happened(a.op, 0)
	again := t.settled(a)
	if again.status > 299 {
		t.failf("the refusal of a request without credentials was stored: the same key with credentials is answered %s", shown(again))
	}
	t.replays(a, again)
	t.happened(a.op, 1)
}

// noForNow lets the operation refuse once with a status that is never stored.
func (t *trial) noForNow(status int) {
	if t.profile.stores(status) {
		t.note("%d is stored, by profile", status)
		return
	}
	a := t.asking()
	a.script = &script{Status: status, Fail: failBefore, Once: true}
	if got := t.send(a); got.status != status {
		t.failf("the fixture answers %s, the script says %d", shown(got), status)
	}
	if got := t.settled(a); got.status > 299 {
		t.against("never_stored", "after a %d the repeat is answered %s", status, shown(got))
	}
	t.happened(a.op, 1)
}

func (t *trial) ownErrors() {
	a := t.asking()
	first := t.executes(a)
	t.send(a.other())
	t.replays(a, first)
	if !t.profile.Suite.offers(offerBarrier) || t.profile.InProgress == "wait" {
		t.note("without a refusal while it runs")
		return
	}
	b := t.asking()
	running, _ := t.beside(b)
	t.replays(b, running)
	t.happened(b.op, 1)
}

func (t *trial) validatedFirst() {
	a := t.asking()
	t.store(false)
	defer t.store(true)
	t.refused(a.with(t.malformed()), refusedKey()...)
	t.store(true)
	t.happened(a.op, 0)
}

func (t *trial) revoked() {
	if !t.profile.Reauthorizes {
		t.inform("a stored answer is given without asking again, by profile")
	}
	a := t.asking()
	first := t.executes(a)
	t.permit(a.op, false)
	got := t.send(a)
	if got.status != t.profile.Statuses[forbidden] || string(got.body) == string(first.body) {
		t.failf("who is no longer allowed is answered %s", shown(got))
	}
	t.permit(a.op, true)
	t.replays(a, first)
	t.happened(a.op, 1)
}

func (t *trial) permit(op string, allowed bool) {
	_, err := t.control(t.ctx, "/permit/"+op, map[string]bool{"allowed": allowed})
	t.must(err)
}

func (t *trial) marker() {
	if t.profile.ReplayHeader == "" {
		t.inform("replays are not marked, by profile")
	}
	a := t.asking()
	first := t.executes(a)
	if t.marked(first) {
		t.failf("the first answer is marked as a replay")
	}
	got := t.replays(a, first)
	if !t.marked(got) {
		t.against("replay_header", "the replay has no %s: %s", t.profile.ReplayHeader, t.profile.ReplayValue)
	}
	if refused := t.send(a.other()); refused.status >= 400 && len(refused.header.Values(t.profile.ReplayHeader)) > 0 {
		t.failf("a refusal is marked as a replay")
	}
	a.more = []line{{"Origin", "https://other.example"}}
	cors := t.send(a).header
	exposed := strings.Contains(strings.ToLower(cors.Get("Access-Control-Expose-Headers")), strings.ToLower(t.profile.ReplayHeader))
	if cors.Get("Access-Control-Allow-Origin") != "" && !exposed {
		t.failf("scripts of other origins cannot see %s", t.profile.ReplayHeader)
	}
}
