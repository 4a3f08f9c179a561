package conform

import (
	"net/http"
	"time"
)

// concurrencyCases are about concurrent requests and lost connections.
func concurrencyCases() []Case {
	return []Case{
		{
			ID: "29", Level: Should, Source: "draft 2.6", Fields: []string{"in_progress"}, needs: []string{offerBarrier},
			Says: "A retry while the first request is in progress is refused or waits, as the profile says; later both get the same answer.",
			run:  (*caseRun).whileRunning,
		},
		{
			ID: "30", Level: Security, Source: "practice", Fields: []string{"replay_header"}, alone: true,
			Says: "Of many identical requests at once, one runs. The others are refused or get its answer; none gets an error.",
			run:  (*caseRun).checkRace,
		},
		{
			ID: "31", Level: Security, Source: "practice",
			Says: "A client that disconnects while its request is in progress, and retries, gets the answer; the effect happened once.",
			run:  (*caseRun).hangUp,
		},
		{
			ID: "32", Level: Security, Source: "practice",
			Says: "After a response was lost, a retry gets it.", run: (*caseRun).lostResponse,
		},
		{
			ID: "33", Level: Security, Source: "practice",
			Says: "Pipelined duplicates, duplicate HTTP/2 streams and Expect: 100-continue have one effect.",
			run:  (*caseRun).duplicatesOnTheWire,
		},
	}
}

func (t *caseRun) whileRunning() {
	a := t.newRequest()
	t.hold(a.op)
	defer t.release(a.op)
	first := t.start(a)
	t.waitHeld(a.op)
	if t.profile.InProgress == "wait" {
		second := t.mustWait(a)
		t.release(a.op)
		t.mustEqual(t.await(second), first())
	} else {
		t.checkRefused(t.sendWhileHeld(a), inProgress)
		t.release(a.op)
	}
	got := first()
	if got.status > 299 {
		t.failf("the first request got %s", describe(got))
	}
	t.mustReplay(a, got)
	t.mustHappen(a.op, 1)
}

// arrivalTime is the time in which a request arrives and, if the server refuses
// it, is refused.
const arrivalTime = 500 * time.Millisecond

// mustWait sends a while the first request for its op is held. The server must
// neither answer nor run it.
func (t *caseRun) mustWait(a request) *inflight {
	second := t.sendAsync(a)
	t.sleep(arrivalTime)
	if second.isDone() {
		t.failf("while the first request is in progress, the second got %s and did not wait", describe(t.await(second)))
	}
	if t.barrier(t.ctx, a.op, nil) > 1 {
		t.failf("it ran while the first request was in progress")
	}
	return second
}

// mustHaveOneFirst fails unless exactly one answer is not marked as a replay.
func (t *caseRun) mustHaveOneFirst(all []reply) {
	if t.profile.ReplayHeader == "" || t.profile.assumes("replay_header") {
		return
	}
	n := 0
	for _, r := range all {
		if r.got.status <= 299 && !t.isReplay(r.got) {
			n++
		}
	}
	if n != 1 {
		t.failf("%d of %d answers are not marked as replays, want only the first one unmarked", n, len(all))
	}
}

// mustAgree compares the answers of concurrent requests with the last answer.
func (t *caseRun) mustAgree(all []reply, last *answer) {
	for _, r := range all {
		switch {
		case r.err != nil:
			t.failf("no answer: %v", r.err)
		case t.isRefusal(r.got, inProgress):
		case t.profile.assumes("statuses."+inProgress) && r.got.status >= 400 && r.got.status <= 499:
			t.note("while the first request is in progress, another is refused with %s", describe(r.got))
		case r.got.status > 299:
			t.failf("one request got %s", describe(r.got))
		default:
			t.mustEqual(last, r.got)
		}
	}
}

// disconnectDelay is the time in which a server notices that a client has
// disconnected.
const disconnectDelay = 100 * time.Millisecond

func (t *caseRun) hangUp() {
	a := t.newRequest()
	if !t.profile.Suite.offers(offerBarrier) {
		reset(t.sendAndLeave(a))
		t.note("no barrier: the time of the request's run is unknown")
	} else {
		t.hold(a.op)
		defer t.release(a.op)
		conn := t.sendAndLeave(a)
		t.waitHeld(a.op)
		reset(conn)
		t.sleep(disconnectDelay)
		t.release(a.op)
	}
	got := t.sendUntilSettled(a)
	t.mustHappen(a.op, 1)
	if got.status > 299 {
		t.failf("the retry got %s", describe(got))
	}
}

func (t *caseRun) lostResponse() {
	a := t.newRequest()
	conn := t.sendAndLeave(a)
	if t.profile.Suite.counts() {
		t.until("the effect", func() bool { return t.effectsOf(a.op) > 0 })
	} else {
		t.sleep(arrivalTime)
	}
	reset(conn)
	got := t.sendUntilSettled(a)
	t.mustHappen(a.op, 1)
	if got.status > 299 {
		t.failf("the retry got %s", describe(got))
	}
	t.mustReplay(a, got)
}

func (t *caseRun) duplicatesOnTheWire() {
	a := t.newRequest()
	first, second := t.pipelined(a)
	last := t.sendUntilSettled(a)
	t.mustHappen(a.op, 1)
	if second == nil {
		t.note("the second of two pipelined requests got no answer")
		t.mustAgree([]reply{{got: first}}, last)
	} else {
		t.mustAgree([]reply{{got: first}, {got: second}}, last)
	}

	b := t.newRequest()
	if streams, ok := t.http2(b, b, b); ok {
		all := make([]reply, 0, len(streams))
		for _, got := range streams {
			all = append(all, reply{got: got})
		}
		last := t.sendUntilSettled(b)
		t.mustHappen(b.op, 1)
		t.mustAgree(all, last)
	} else {
		t.note("the server does not speak HTTP/2")
	}

	e := t.newRequest()
	e.more = []line{{"Expect", "100-continue"}}
	got := t.send(e)
	if got.status == http.StatusExpectationFailed {
		t.note("Expect is refused")
		return
	}
	again := t.sendUntilSettled(e)
	t.mustHappen(e.op, 1)
	t.mustEqual(again, got)
}
