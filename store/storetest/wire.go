package storetest

import (
	"time"

	"github.com/semelgo/semel/store"
)

// wireChecks lose the reply to one call on the network, together with the driver's
// own reaction. The call was applied: a retry confirms it, and it has no second
// effect.
func wireChecks() []storeCheck {
	return []storeCheck{
		{"Claim", wireClaim},
		{"ClaimIfDue", wireClaimIfDue},
		{"Heartbeat", wireHeartbeat},
		{"Complete", wireComplete},
		{"Release", wireRelease},
		{"Batch", wireBatch},
		{"Note", wireNote},
		{"Purge", wirePurge},
		{"Dequeue", wireDequeue},
	}
}

// lacksConnection returns why no reply of the store's connection can be lost.
func (r *harness) lacksConnection() string {
	if r.lose == nil {
		return "Subject.Lose is nil: there is no connection whose replies can be lost"
	}
	return ""
}

// withLostReply requires that a reply is lost during do.
func (r *harness) withLostReply(do func()) {
	r.Helper()
	lost := r.lose()
	do()
	if !lost() {
		r.Error("no reply was lost: Subject.Lose does not do what it says")
	}
}

// retryUntilAnswered repeats the call until it is answered.
func (r *harness) retryUntilAnswered(call func() error) {
	r.Helper()
	for {
		err := call()
		if err == nil {
			return
		}
		if pause(r.ctx) != nil {
			r.Fatalf("a call whose reply was lost is never answered: %v", err)
		}
	}
}

// mustApplyWithLostReply makes the changes, loses the reply, and requires that the
// retry finds them applied.
func (r *harness) mustApplyWithLostReply(changes ...store.Change) {
	r.Helper()
	var answers []store.SwapResult
	r.withLostReply(func() {
		r.retryUntilAnswered(func() (err error) {
			answers, err = swapAll(r.ctx, r.store, changes)
			return err
		})
	})
	for i, c := range changes {
		if !answers[i].Applied(c) {
			r.Errorf("%s after a lost reply = %s, want applied", show(c), showAnswer(answers[i]))
		}
	}
}

// The winner of a claim whose reply was lost is still its only winner.
func wireClaim(r *harness) {
	rec := r.fresh()
	rec.Due = farAhead
	claim := create(rec, store.InProgress)
	r.mustApplyWithLostReply(claim)
	r.mustReject(create(rec, store.InProgress), claim.To.Token)
	r.mustHoldRecord(claim.To)
}

// The claim itself has made the record not due when the claim is repeated.
func wireClaimIfDue(r *harness) {
	for _, state := range []store.State{store.Pending, store.InProgress} {
		due := create(r.fresh(), state)
		r.mustApply(due)
		claim := move(due.To, token(store.InProgress, 2))
		claim.IfDue, claim.To.Due = true, farAhead
		r.mustApplyWithLostReply(claim)
		rival := move(due.To, token(store.InProgress, 2))
		rival.IfDue = true
		r.mustReject(rival, claim.To.Token)
	}
}

func wireHeartbeat(r *harness) {
	rec := r.mustCreateIn(store.InProgress)
	beat := move(rec, rec.Token)
	beat.To.Due = 2 * farAhead
	r.mustApplyWithLostReply(beat)
	if got := r.mustRead(rec.ID).Due; !near(got, 2*farAhead) {
		r.Errorf("after a heartbeat of %v, Due = %v", 2*farAhead, got)
	}
	r.mustHoldRecord(rec)
}

func wireComplete(r *harness) {
	for _, state := range []store.State{store.Succeeded, store.Failed} {
		rec := r.mustCreateIn(store.InProgress)
		finish := move(rec, store.Token{State: state, Attempt: 1, Owner: rec.Owner})
		finish.To.Outcome = []byte("the end")
		r.mustApplyWithLostReply(finish)
		want := rec
		want.Token, want.Outcome = finish.To.Token, finish.To.Outcome
		r.mustHoldRecord(want)
	}
}

// A release whose reply was lost is current until the next claim, and does not come
// back afterwards.
func wireRelease(r *harness) {
	rec := r.mustCreateIn(store.InProgress)
	release := move(rec, store.Token{State: store.Pending, Attempt: 1, Owner: rec.Owner})
	r.mustApplyWithLostReply(release)
	claim := move(release.To, token(store.InProgress, 2))
	r.mustApply(claim)
	r.mustReject(release, claim.To.Token)
}

func wireBatch(r *harness) {
	taken := r.mustCreateIn(store.Succeeded)
	changes := make([]store.Change, 0, 40)
	for range cap(changes) / 2 {
		rec := r.mustCreateIn(store.InProgress)
		changes = append(changes, create(r.fresh(), store.InProgress), move(rec, token(store.Succeeded, 1)))
	}
	r.mustApplyWithLostReply(changes...)
	for _, c := range changes {
		if got := r.mustRead(c.To.ID).Token; got != c.To.Token {
			r.Errorf("after the batch %s is current, want %s", showToken(got), showToken(c.To.Token))
		}
	}
	r.mustHoldRecord(taken)
}

func wireNote(r *harness) {
	a, ok := r.store.(store.Auditor)
	if !ok {
		r.Skip("the store is no store.Auditor")
	}
	rec := r.mustCreateIn(store.InDoubt)
	settle := move(rec, token(store.Failed, 1))
	note := store.Note{ID: rec.ID, From: settle.If, To: settle.To.Token, Actor: "ann", Reason: "nothing was sent"}
	var answer store.SwapResult
	r.withLostReply(func() {
		r.retryUntilAnswered(func() (err error) {
			answer, err = a.SwapNoted(r.ctx, settle, note)
			return err
		})
	})
	if !answer.Applied(settle) {
		r.Errorf("SwapNoted after a lost reply = %s, want applied", showAnswer(answer))
	}
	r.mustNote(a, rec.ID, note)
}

// Purged records are gone, even if the reply was lost; the others stay.
func wirePurge(r *harness) {
	for range 5 {
		r.expiring(store.Succeeded, -time.Second)
	}
	kept := r.expiring(store.Succeeded, farAhead)
	r.withLostReply(func() {
		r.retryUntilAnswered(func() error {
			_, err := r.store.Purge(r.ctx, 10)
			return err
		})
	})
	r.mustPurge(10, 0)
	r.mustFind(store.Query{}, kept)
}

// The records that a Dequeue has claimed are returned by its retry, and are claimed
// once. They may be fewer than the Limit, because a store with several servers claims with
// several requests.
func wireDequeue(r *harness) {
	if why := r.lacksDequeue(); why != "" {
		r.Skip(why)
	}
	for range 6 {
		r.createPending(0, 0)
	}
	d := dequeueOf(4)
	var got []store.Record
	r.withLostReply(func() {
		r.retryUntilAnswered(func() (err error) {
			got, err = r.store.(store.Dequeuer).Dequeue(r.ctx, d)
			return err
		})
	})
	r.mustFind(store.Query{State: store.InProgress}, got...)
	for _, rec := range got {
		if want := (store.Token{State: store.InProgress, Attempt: 1, Owner: d.Owner}); rec.Token != want {
			r.Errorf("after a lost reply %s is given, want %s", showToken(rec.Token), showToken(want))
		}
	}
	if len(got) == 0 || len(got) > d.Limit {
		r.Errorf("after a lost reply %d records are given, want 1 to %d", len(got), d.Limit)
	}
}
