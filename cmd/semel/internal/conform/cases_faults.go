package conform

import "net/http"

// faultCases are about what fails beneath the server. They run alone.
func faultCases() []Case {
	return []Case{
		{
			ID: "47", Level: Security, Source: "practice", Fields: []string{"statuses.unavailable"},
			needs: []string{offerStore, offerBarrier}, alone: true,
			Says: "While the store is down nothing runs, and the client is told when to come back; one that goes down meanwhile makes nothing happen twice.",
			run:  (*trial).storeDown,
		},
		{
			ID: "48", Level: Security, Source: "practice", needs: []string{offerCrash, offerBarrier}, alone: true,
			Says: "After a crash in the middle a repeat is told to wait, or answered; it happens at most once.",
			run:  (*trial).crashes,
		},
		{
			ID: "49", Level: Security, Source: "practice", Fields: []string{"replay_max_bytes"}, needs: []string{offerFixture},
			Says: "A response that is too large to be kept goes to the first caller whole; the request is never run again.",
			run:  (*trial).tooLarge,
		},
		{
			ID: "50", Level: Security, Source: "practice", needs: []string{offerCrash}, alone: true,
			Says: "What was answered before a restart is replayed after it.", run: (*trial).restarts,
		},
	}
}

// store takes the fixture's store down, or up. Up also after the trial's end.
func (t *trial) store(up bool) {
	ctx, cancel := t.lasting()
	defer cancel()
	_, err := t.control(ctx, "/store", map[string]bool{"up": up})
	t.must(err)
}

func (t *trial) storeDown() {
	a := t.asking()
	t.store(false)
	defer t.store(true)
	got := t.refused(a, unavailable)
	if got.header.Get("Retry-After") == "" {
		t.failf("%s has no Retry-After", shown(got))
	}
	t.store(true)
	t.happened(a.op, 0)
	t.replays(a, t.settled(a))
	t.happened(a.op, 1)
	t.storeGoesDown()
}

// storeGoesDown takes the store from a request that runs.
func (t *trial) storeGoesDown() {
	a := t.asking()
	t.hold(a.op)
	defer t.release(a.op)
	running := t.later(a)
	t.held(a.op)
	t.store(false)
	t.release(a.op)
	first := running()
	t.store(true)
	n := t.count(a.op)
	if first.status <= 299 && n != 1 {
		t.failf("the first was told %s, and it happened %s", shown(first), times(n))
	}
	got := t.settled(a)
	switch {
	case first.status <= 299:
		t.equal(got, first)
		t.happened(a.op, 1)
	case got.status <= 299:
		t.happened(a.op, 1)
	case n <= 1 && (t.refusal(got, outcomeUnknown) || got.status >= 500 && t.profile.stores(got.status)):
		t.happened(a.op, n)
	default:
		t.failf("the first is answered %s, the repeat %s", shown(first), shown(got))
	}
}

// crash kills what works for the fixture, and waits until it is back.
func (t *trial) crash() {
	// Its answer dies with it.
	_, _ = t.server.exchange(t.ctx, message{method: http.MethodPost, path: "/crash", lines: t.who(principalA)})
	t.until("the server to come back", func() bool {
		_, err := t.effects(t.ctx, t.name())
		return err == nil
	})
}

func (t *trial) crashes() {
	a := t.asking()
	t.hold(a.op)
	lost := t.depart(a)
	t.held(a.op)
	t.crash()
	if <-lost.landed; lost.err == nil {
		t.failf("the request was answered %s by a worker that was killed", shown(lost.got))
	}
	n := t.count(a.op)
	got := t.send(a)
	if !t.refusal(got, inProgress, outcomeUnknown) && got.status > 299 {
		t.failf("right after the crash the repeat is answered %s", shown(got))
	}
	got = t.settled(a)
	switch {
	case got.status <= 299:
		t.replays(a, got)
		t.happened(a.op, 1)
		t.note("taken over")
	case t.refusal(got, outcomeUnknown):
		t.happened(a.op, n)
		t.note("told as unknown")
	default:
		t.failf("after the crash the repeat is answered %s", shown(got))
	}
}

func (t *trial) tooLarge() {
	if limit := t.profile.ReplayMaxBytes; limit < 1 || limit > maxAnswer/2 {
		t.notShown("replay_max_bytes is %d, which no response of the suite is larger than", limit)
	}
	a := t.asking()
	a.script = &script{BodyBytes: int(t.profile.ReplayMaxBytes) + 64<<10}
	first := t.executes(a)
	if len(first.body) != a.script.BodyBytes {
		t.failf("the first caller gets %d of %d bytes", len(first.body), a.script.BodyBytes)
	}
	got := t.send(a)
	if got.status > 299 {
		t.isRefused(got, resultUnavailable)
	} else {
		t.equal(got, first)
	}
	t.happened(a.op, 1)
}

func (t *trial) restarts() {
	a := t.asking()
	first := t.executes(a)
	t.crash()
	t.replays(a, first)
	t.happened(a.op, 1)
}
