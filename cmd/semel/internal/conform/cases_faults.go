package conform

import "net/http"

// faultCases are about failures below the server. They run alone.
func faultCases() []Case {
	return []Case{
		{
			ID: "47", Level: Security, Source: "practice", Fields: []string{"statuses.unavailable"},
			needs: []string{offerStore, offerBarrier}, alone: true,
			Says: "While the store is down, no request runs, and the answer has a Retry-After. A store that fails during a request causes no second effect.",
			run:  (*caseRun).storeDown,
		},
		{
			ID: "48", Level: Security, Source: "practice", needs: []string{offerCrash, offerBarrier}, alone: true,
			Says: "After a crash during a request, a retry is told to wait or gets an answer; the effect happens at most once.",
			run:  (*caseRun).afterCrash,
		},
		{
			ID: "49", Level: Security, Source: "practice", Fields: []string{"replay_max_bytes"}, needs: []string{offerFixture},
			Says: "A response that is too large to store reaches the first caller completely; the request never runs again.",
			run:  (*caseRun).tooLarge,
		},
		{
			ID: "50", Level: Security, Source: "practice", needs: []string{offerCrash}, alone: true,
			Says: "Answers from before a restart are replayed after it.", run: (*caseRun).restarts,
		},
	}
}

// setStore makes the fixture's store unavailable or available. The cleanup of
// the case makes it available again.
func (t *caseRun) setStore(up bool) {
	ctx, cancel := t.cleanupContext()
	defer cancel()
	_, err := t.control(ctx, "/store", map[string]bool{"up": up})
	t.must(err)
}

func (t *caseRun) storeDown() {
	a := t.newRequest()
	t.setStore(false)
	defer t.setStore(true)
	got := t.mustRefuse(a, unavailable)
	if got.header.Get("Retry-After") == "" {
		t.failf("%s has no Retry-After", describe(got))
	}
	t.setStore(true)
	t.mustHappen(a.op, 0)
	t.mustReplay(a, t.sendUntilSettled(a))
	t.mustHappen(a.op, 1)
	t.storeGoesDown()
}

// storeGoesDown makes the store unavailable while a request is in progress.
func (t *caseRun) storeGoesDown() {
	a := t.newRequest()
	t.hold(a.op)
	defer t.release(a.op)
	running := t.start(a)
	t.waitHeld(a.op)
	t.setStore(false)
	t.release(a.op)
	first := running()
	t.setStore(true)
	n := t.effectsOf(a.op)
	if first.status <= 299 && n != 1 {
		t.failf("the first request got %s, and the effect happened %s", describe(first), times(n))
	}
	got := t.sendUntilSettled(a)
	switch {
	case first.status <= 299:
		t.mustEqual(got, first)
		t.mustHappen(a.op, 1)
	case got.status <= 299:
		t.mustHappen(a.op, 1)
	case n <= 1 && (t.isRefusal(got, outcomeUnknown) || got.status >= 500 && t.profile.stores(got.status)):
		t.mustHappen(a.op, n)
	default:
		t.failf("the first request got %s, the retry %s", describe(first), describe(got))
	}
}

// crash kills the fixture's worker and waits for the next one.
func (t *caseRun) crash() {
	// The worker dies before it can answer this request.
	_, _ = t.server.exchange(t.ctx, message{method: http.MethodPost, path: "/crash", lines: t.principalLines(principalA)})
	t.until("the server to restart", func() bool {
		_, err := t.effects(t.ctx, t.newName())
		return err == nil
	})
}

func (t *caseRun) afterCrash() {
	a := t.newRequest()
	t.hold(a.op)
	lost := t.sendAsync(a)
	t.waitHeld(a.op)
	t.crash()
	if <-lost.done; lost.err == nil {
		t.failf("the request got %s from a killed worker", describe(lost.got))
	}
	n := t.effectsOf(a.op)
	got := t.send(a)
	if !t.isRefusal(got, inProgress, outcomeUnknown) && got.status > 299 {
		t.failf("right after the crash the retry got %s", describe(got))
	}
	got = t.sendUntilSettled(a)
	switch {
	case got.status <= 299:
		t.mustReplay(a, got)
		t.mustHappen(a.op, 1)
		t.note("taken over")
	case t.isRefusal(got, outcomeUnknown):
		t.mustHappen(a.op, n)
		t.note("the outcome is reported as unknown")
	default:
		t.failf("after the crash the retry got %s", describe(got))
	}
}

func (t *caseRun) tooLarge() {
	if limit := t.profile.ReplayMaxBytes; limit < 1 || limit > maxAnswer/2 {
		t.notShown("replay_max_bytes is %d, and no response of the suite is larger", limit)
	}
	a := t.newRequest()
	a.script = &script{BodyBytes: int(t.profile.ReplayMaxBytes) + 64<<10}
	first := t.mustExecute(a)
	if len(first.body) != a.script.BodyBytes {
		t.failf("the first caller got %d of %d bytes", len(first.body), a.script.BodyBytes)
	}
	got := t.send(a)
	if got.status > 299 {
		t.checkRefused(got, resultUnavailable)
	} else {
		t.mustEqual(got, first)
	}
	t.mustHappen(a.op, 1)
}

func (t *caseRun) restarts() {
	a := t.newRequest()
	first := t.mustExecute(a)
	t.crash()
	t.mustReplay(a, first)
	t.mustHappen(a.op, 1)
}
