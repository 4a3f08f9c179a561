package conform

import (
	"net/http"
	"strings"
)

// repeatCases are about retries after the first request.
func repeatCases() []Case {
	return []Case{
		{
			ID: "23", Level: May, Source: "draft 2.5.1",
			Says: "A key on a request that needs none, such as GET, is ignored, even if it is malformed.", run: (*caseRun).keyOnGet,
		},
		{
			ID: "24", Level: Should, Source: "draft 2.5.2",
			Says: "The server remembers keys: the first request runs, the same request does not run again, another one is refused.",
			run:  (*caseRun).knowsKeys,
		},
		{
			ID: "25", Level: Should, Source: "draft 2.6", Fields: []string{"replay_header"},
			Says: "The first request runs normally, and its answer is not marked as a replay.",
			run:  (*caseRun).firstTime,
		},
		{
			ID: "26", Level: Should, Source: "draft 2.6", Fields: []string{"replay_max_bytes"},
			Says: "A retry after success gets the same status, body, and headers that describe the result.",
			run:  (*caseRun).sameAnswers,
		},
		{
			ID: "27", Level: Should, Source: "draft 2.6", Fields: []string{"never_stored"}, needs: []string{offerFixture},
			Says: "A retry after a final refusal by the operation gets the same refusal.", run: (*caseRun).sameRefusals,
		},
		{
			ID: "28", Level: Promise, Source: "profile", Fields: []string{"server_errors"}, needs: []string{offerFixture},
			Says: "After a 5xx, a retry gets it again, or runs again only if there was no effect, as the profile says.",
			run:  (*caseRun).serverErrors,
		},
	}
}

// keyOnGet reads the counter before and after an effect, with the key of the
// effect and with malformed key lines.
func (t *caseRun) keyOnGet() {
	if !t.profile.Suite.counts() {
		t.notShown("it needs a counter that can be read with GET")
	}
	a := t.newRequest()
	lines := [][]string{nil, a.keys, {`"`}, {""}}
	for _, keys := range lines {
		t.checkLookup(a.op, keys, 0)
	}
	t.mustExecute(a)
	for _, keys := range lines {
		t.checkLookup(a.op, keys, 1)
	}
}

// checkLookup reads the counter of op with the given key lines.
func (t *caseRun) checkLookup(op string, keys []string, want int) {
	var more []line
	for _, k := range keys {
		more = append(more, line{t.profile.Header, k})
	}
	got, err := t.lookUp(t.ctx, op, principalA, more...)
	if err != nil {
		t.failf("no answer: %v", err)
	}
	if got.status != http.StatusOK {
		t.failf("GET with the key lines %q got %s", keys, describe(got))
	}
	n, err := t.countIn(got, op)
	t.must(err)
	if n != want {
		t.failf("GET with the key lines %q counts the effect %s; it happened %s", keys, times(n), times(want))
	}
}

func (t *caseRun) firstTime() {
	a := t.newRequest()
	if got := t.mustExecute(a); t.isReplay(got) {
		t.failf("the first answer is marked as a replay")
	}
	t.mustHappen(a.op, 1)
}

func (t *caseRun) knowsKeys() {
	a := t.newRequest()
	first := t.mustExecute(a)
	t.mustReplay(a, first)
	if got := t.send(a.withOtherPayload()); got.status < 400 {
		t.failf("another payload got %s", describe(got))
	}
	t.mustHappen(a.op, 1)
}

// answersToRepeat are kinds of success that servers often replay wrongly.
func (t *caseRun) answersToRepeat() []script {
	described := map[string]string{"Location": "/ops/7", "ETag": `"v7"`, "Content-Type": "text/plain; charset=utf-8"}
	binary := map[string]string{"Content-Type": "application/octet-stream"}
	return []script{
		{Status: http.StatusOK},
		{Status: http.StatusCreated, Headers: described},
		{Status: http.StatusAccepted},
		{Status: http.StatusNoContent},
		{Status: http.StatusSeeOther, Headers: map[string]string{"Location": "/ops/7"}},
		{Status: http.StatusCreated, BodyBytes: int(min(t.profile.ReplayMaxBytes, 1<<20)), Headers: binary},
		{Status: http.StatusOK, BodyBytes: 512, Headers: map[string]string{"Content-Encoding": "gzip"}},
		{Status: http.StatusOK, Headers: map[string]string{"Content-Disposition": `attachment; filename="é"`}},
	}
}

func (t *caseRun) sameAnswers() {
	if !t.profile.Suite.offers(offerFixture) {
		a := t.newRequest()
		t.mustRepeat(a, t.mustExecute(a))
		t.note("only the endpoint's own answer was tested")
		return
	}
	for _, s := range t.answersToRepeat() {
		a := t.newRequest()
		a.script = &s
		first := t.send(a)
		if first.status != s.Status || s.BodyBytes > 0 && len(first.body) != s.BodyBytes {
			t.failf("the fixture answers %s with %d bytes, not the scripted response", describe(first), len(first.body))
		}
		t.mustCarry(first, s.Headers)
		t.mustRepeat(a, first)
		t.mustHappen(a.op, 1)
	}
}

func (t *caseRun) sameRefusals() {
	tried := false
	for _, status := range []int{http.StatusPaymentRequired, http.StatusConflict, http.StatusUnprocessableEntity} {
		if !t.profile.stores(status) {
			continue
		}
		tried = true
		a := t.newRequest()
		a.script = &script{Status: status, Once: true}
		first := t.send(a)
		if first.status != status {
			t.failf("the fixture answers %s, the script has %d", describe(first), status)
		}
		n := t.effectsOf(a.op)
		t.mustRepeat(a, first)
		t.mustHappen(a.op, n)
	}
	if !tried {
		t.notShown("by its profile the server never stores 402, 409 and 422")
	}
}

func (t *caseRun) serverErrors() {
	for _, s := range []script{
		{Status: http.StatusInternalServerError, Fail: failBefore},
		{Status: http.StatusServiceUnavailable, Fail: failBefore},
		{Status: http.StatusInternalServerError, Fail: failAfter},
		{Status: http.StatusGatewayTimeout, Fail: failAfter},
	} {
		s.Once = true
		a := t.newRequest()
		a.script = &s
		first := t.send(a)
		if first.status < 500 {
			t.failf("the fixture answers %s, the script has %d", describe(first), s.Status)
		}
		n := t.effectsOf(a.op)
		if t.profile.ServerErrors == "stored" {
			t.mustRepeat(a, first)
			t.mustHappen(a.op, n)
		} else {
			t.checkAfterServerError(a, n, strings.TrimSpace(s.Fail))
		}
	}
	t.afterPanic()
}

// checkAfterServerError retries a, whose first run failed after n effects.
func (t *caseRun) checkAfterServerError(a request, n int, how string) {
	got := t.sendUntilSettled(a)
	switch {
	case got.status <= 299:
		t.mustHappen(a.op, 1)
	case t.isRefusal(got, outcomeUnknown):
		t.mustHappen(a.op, n)
		t.note("%s: the outcome is reported as unknown", how)
	default:
		t.mustHappen(a.op, n)
		t.failUnlessAssumed("server_errors", "after a 5xx (%s) the retry got %s", how, describe(got))
	}
}

func (t *caseRun) afterPanic() {
	a := t.newRequest()
	a.script = &script{Fail: failPanic, Once: true}
	if got, err := t.try(a); err == nil && got.status < 500 {
		t.failf("a request whose handler panics got %s", describe(got))
	}
	n := t.effectsOf(a.op)
	if n > 1 {
		t.failf("the effect happened %s before the panic", times(n))
	}
	if got := t.sendUntilSettled(a); got.status <= 299 {
		t.mustHappen(a.op, 1)
	} else {
		t.mustHappen(a.op, n)
	}
}
