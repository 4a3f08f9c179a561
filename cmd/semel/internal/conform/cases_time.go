package conform

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/google/uuid"
)

// timeCases are about the retention of keys.
func timeCases() []Case {
	return []Case{
		{
			ID: "18", Level: Promise, Source: "draft 2.3", Fields: []string{"retention_seconds", "after_retention"},
			needs: []string{offerClock}, alone: true,
			Says: "Until the end of the retention, a retry gets the stored answer; after that, as the profile says.",
			run:  (*caseRun).retention,
		},
		{
			ID: "19", Level: Must, Source: "draft 2.3, 2.5.2", Fields: []string{"problems", "retention_seconds"},
			Says: "The links in errors work, and the retention is published in a form for programs.",
			run:  (*caseRun).published,
		},
		{
			ID: "20", Level: Promise, Source: "draft 2.3", Fields: []string{"key.time", "retention_seconds"},
			Says: "A key whose time is past the retention, or in the future, is refused.", run: (*caseRun).oldKeys,
		},
	}
}

// clockMargin is the allowed difference between the clocks of the fixture and
// the suite.
const clockMargin = time.Minute

func (t *caseRun) retention() { t.checkRetention(t.profile.AfterRetention == "expired") }

// checkRetention advances the clock past the retention. After that the request
// runs again, or is refused.
func (t *caseRun) checkRetention(expires bool) {
	a := t.newRequest()
	if t.profile.Key.Time != "" {
		// The caller chooses the time in a key.
		a = a.withKeys(t.keyLine(t.keyWithTime(time.Now())))
	}
	first := t.mustExecute(a)
	moved := t.profile.retention() - clockMargin
	defer func() { t.advance(-moved) }() // later cases must find the clock unchanged
	t.advance(moved)
	t.mustReplay(a, first)
	t.mustHappen(a.op, 1)
	t.advance(2 * clockMargin)
	moved += 2 * clockMargin
	got := t.sendUntilSettled(a)
	switch {
	case expires:
		t.checkRefused(got, keyExpired)
		t.mustHappen(a.op, 1)
	case got.status > 299:
		t.failf("after the retention the request got %s", describe(got))
	default:
		t.mustHappen(a.op, 2)
	}
}

func (t *caseRun) advance(d time.Duration) {
	ctx, cancel := t.cleanupContext()
	defer cancel()
	_, err := t.control(ctx, "/clock", map[string]string{"advance": d.String()})
	t.must(err)
}

func (t *caseRun) published() {
	for _, got := range t.refusals() {
		// Other cases test whether there is a link.
		if where := t.documentationLink(got); where != "" {
			t.mustResolve(where)
		}
	}
	if t.profile.Errors == stripe && t.profile.Problems != "" {
		t.mustResolve(t.absolute(t.profile.Problems + keyReused))
	}
	p, err := FetchProfile(t.ctx, t.server.base.String())
	switch {
	case errors.Is(err, ErrUnpublished):
		t.notShown("there is nothing at %s, and no other place of the retention is known", WellKnown)
	case err != nil:
		t.failf("the published profile is invalid: %v", err)
	case p.Retention != t.profile.Retention:
		t.failf("the published retention is %d s, the profile says %d s", p.Retention, t.profile.Retention)
	}
}

// refusals returns one refusal of each kind that the server can produce.
func (t *caseRun) refusals() []*answer {
	a := t.newRequest()
	t.mustExecute(a)
	all := []*answer{t.send(a.withOtherPayload()), t.send(t.newRequest().withKeys()), t.send(a.withKeys(t.malformedKey()))}
	if !t.profile.Suite.offers(offerBarrier) || t.profile.InProgress == "wait" {
		return all
	}
	b := t.newRequest()
	t.hold(b.op)
	defer t.release(b.op)
	first := t.start(b)
	t.waitHeld(b.op)
	if got := t.trySendWhileHeld(b); got != nil { // other cases report it
		all = append(all, got)
	}
	t.release(b.op)
	first()
	return all
}

// skew is larger than any clock difference that a server allows.
const skew = 24 * time.Hour

func (t *caseRun) oldKeys() {
	if t.profile.Key.Time == "" {
		t.notShown("key.time is empty: keys contain no time")
	}
	// The caller chooses the time in a key.
	now := time.Now()
	t.mustProtect(t.newRequest().withKeys(t.keyLine(t.keyWithTime(now))))
	for _, when := range []time.Time{now.Add(-t.profile.retention() - skew), now.Add(skew)} {
		t.mustReject(t.newRequest().withKeys(t.keyLine(t.keyWithTime(when))), keyExpired)
	}
}

// keyWithTime returns a new key with the time when.
func (t *caseRun) keyWithTime(when time.Time) string {
	id, err := uuid.NewV7()
	if err != nil {
		t.failf("draw a key: %v", err)
	}
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(when.UnixMilli())<<16)
	copy(id[:6], ms[:6])
	if t.profile.Key.Time == "ulid" {
		return ulid(id)
	}
	return id.String()
}
