package conform

import (
	"net/http"
	"time"
)

// togetherCases are about requests at the same time, and about what is lost on
// the way.
func togetherCases() []Case {
	return []Case{
		{
			ID: "29", Level: Should, Source: "draft 2.6", Fields: []string{"in_progress"}, needs: []string{offerBarrier},
			Says: "A repeat while the first runs is refused, or waits, as the profile says; later both agree.",
			run:  (*trial).whileRunning,
		},
		{
			ID: "30", Level: Security, Source: "practice", Fields: []string{"replay_header"}, alone: true,
			Says: "Of many identical requests at once, one runs; the others are refused or get its answer, and nobody an error.",
			run:  (*trial).storms,
		},
		{
			ID: "31", Level: Security, Source: "practice",
			Says: "A client that hangs up while its request runs, and repeats it, gets the answer of what happened once.",
			run:  (*trial).hangUp,
		},
		{
			ID: "32", Level: Security, Source: "practice",
			Says: "A response that is lost on the way is had by repeating the request.", run: (*trial).lostResponse,
		},
		{
			ID: "33", Level: Security, Source: "practice",
			Says: "Pipelined duplicates, duplicate HTTP/2 streams and Expect: 100-continue make it happen once.",
			run:  (*trial).duplicatesOnTheWire,
		},
	}
}

func (t *trial) whileRunning() {
	a := t.asking()
	t.hold(a.op)
	defer t.release(a.op)
	first := t.later(a)
	t.held(a.op)
	if t.profile.InProgress == "wait" {
		second := t.waits(a)
		t.release(a.op)
		t.equal(t.answerOf(second), first())
	} else {
		t.isRefused(t.meanwhile(a), inProgress)
		t.release(a.op)
	}
	got := first()
	if got.status > 299 {
		t.failf("the first is answered %s", shown(got))
	}
	t.replays(a, got)
	t.happened(a.op, 1)
}

// arriving is how long a request has to arrive, and to be refused if it is.
const arriving = 500 * time.Millisecond

// waits sends a while the first request for its op is held. It must be neither
// answered nor run.
func (t *trial) waits(a ask) *flight {
	second := t.depart(a)
	t.rest(arriving)
	if second.answered() {
		t.failf("while the first runs it is answered %s, and does not wait", shown(t.answerOf(second)))
	}
	if t.barrier(t.ctx, a.op, nil) > 1 {
		t.failf("it runs while the first runs")
	}
	return second
}

// oneFirst fails unless one of many was answered as the first, and only one.
func (t *trial) oneFirst(all []reply) {
	if t.profile.ReplayHeader == "" || t.profile.assumes("replay_header") {
		return
	}
	n := 0
	for _, r := range all {
		if r.got.status <= 299 && !t.marked(r.got) {
			n++
		}
	}
	if n != 1 {
		t.failf("%d of %d answers are not marked as replays, want the first one's alone", n, len(all))
	}
}

// agree holds what many were told to what is told in the end.
func (t *trial) agree(all []reply, last *answer) {
	for _, r := range all {
		switch {
		case r.err != nil:
			t.failf("no answer: %v", r.err)
		case t.refusal(r.got, inProgress):
		case t.profile.assumes("statuses."+inProgress) && r.got.status >= 400 && r.got.status <= 499:
			t.note("while the first runs, another is refused with %s", shown(r.got))
		case r.got.status > 299:
			t.failf("one is answered %s", shown(r.got))
		default:
			t.equal(last, r.got)
		}
	}
}

// noticing is how long a server has to notice that a client is gone.
const noticing = 100 * time.Millisecond

func (t *trial) hangUp() {
	a := t.asking()
	if !t.profile.Suite.offers(offerBarrier) {
		reset(t.begun(a))
		t.note("no barrier: the moment is not known")
	} else {
		t.hold(a.op)
		defer t.release(a.op)
		conn := t.begun(a)
		t.held(a.op)
		reset(conn)
		t.rest(noticing)
		t.release(a.op)
	}
	got := t.settled(a)
	t.happened(a.op, 1)
	if got.status > 299 {
		t.failf("the repeat is answered %s", shown(got))
	}
}

func (t *trial) lostResponse() {
	a := t.asking()
	conn := t.begun(a)
	if t.profile.Suite.counts() {
		t.until("the effect", func() bool { return t.count(a.op) > 0 })
	} else {
		t.rest(arriving)
	}
	reset(conn)
	got := t.settled(a)
	t.happened(a.op, 1)
	if got.status > 299 {
		t.failf("the repeat is answered %s", shown(got))
	}
	t.replays(a, got)
}

func (t *trial) duplicatesOnTheWire() {
	a := t.asking()
	first, second := t.pipelined(a)
	last := t.settled(a)
	t.happened(a.op, 1)
	if second == nil {
		t.note("the second of two pipelined requests is not answered")
		t.agree([]reply{{got: first}}, last)
	} else {
		t.agree([]reply{{got: first}, {got: second}}, last)
	}

	b := t.asking()
	if streams, ok := t.http2(b, b, b); ok {
		all := make([]reply, 0, len(streams))
		for _, got := range streams {
			all = append(all, reply{got: got})
		}
		last := t.settled(b)
		t.happened(b.op, 1)
		t.agree(all, last)
	} else {
		t.note("HTTP/2 is not spoken")
	}

	e := t.asking()
	e.more = []line{{"Expect", "100-continue"}}
	got := t.send(e)
	if got.status == http.StatusExpectationFailed {
		t.note("Expect is refused")
		return
	}
	again := t.settled(e)
	t.happened(e.op, 1)
	t.equal(again, got)
}
