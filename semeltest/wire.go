package semeltest

import (
	"context"
	"slices"
	"time"

	"github.com/semelgo/semel/store"
)

// wireChecks lose the reply to one call on the network, with the driver's own
// reaction to it. The call was applied: repeated, it is confirmed, and nothing
// happens twice.
func wireChecks[Tx any]() []check[Tx] {
	return slices.Concat([]check[Tx]{
		{"Claim", wireClaim[Tx]},
		{"ClaimIfDue", wireClaimIfDue[Tx]},
		{"Heartbeat", wireHeartbeat[Tx]},
		{"Complete", wireComplete[Tx]},
		{"Release", wireRelease[Tx]},
		{"Batch", wireBatch[Tx]},
		{"Note", wireNote[Tx]},
		{"Purge", wirePurge[Tx]},
		{"Dequeue", wireDequeue[Tx]},
	}, inTx(
		check[Tx]{"Commit", wireCommit[Tx]},
		check[Tx]{"CommitFinish", wireCommitFinish[Tx]},
		check[Tx]{"CommitKept", wireCommitKept[Tx]},
		check[Tx]{"AtomicBatch", wireAtomicBatch[Tx]},
	))
}

// connection says why a subject has no connection whose replies can be lost.
func connection[Tx any](s Subject[Tx]) string {
	if s.Lose == nil {
		return "Subject.Lose is nil: there is no connection whose replies can be lost"
	}
	return ""
}

// losingOne requires that do loses a reply.
func (r *txRig[Tx]) losingOne(do func()) {
	r.Helper()
	lost := r.subject.Lose()
	do()
	if !lost() {
		r.Error("no reply was lost: Subject.Lose does not do what it says")
	}
}

// again makes the call until it is answered.
func (r *rig) again(call func() error) {
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

// mustForceLosing asks for the changes, loses the reply, and requires that they
// are in force once there is an answer.
func (r *txRig[Tx]) mustForceLosing(changes ...store.Change) {
	r.Helper()
	var answers []store.SwapResult
	r.losingOne(func() {
		r.again(func() (err error) {
			answers, err = swapAll(r.ctx, r.store, changes)
			return err
		})
	})
	for i, c := range changes {
		if !answers[i].Applied(c) {
			r.Errorf("%s after a lost reply = %s, want in force", show(c), showAnswer(answers[i]))
		}
	}
}

// The winner of a claim whose reply was lost is still its only winner.
func wireClaim[Tx any](r *txRig[Tx]) {
	rec := r.fresh()
	rec.Due = long
	claim := create(rec, store.InProgress)
	r.mustForceLosing(claim)
	r.mustRefuse(create(rec, store.InProgress), claim.To.Token)
	r.mustStand(claim.To)
}

// The record is not due any more when the claim is asked for again: by itself.
func wireClaimIfDue[Tx any](r *txRig[Tx]) {
	for _, state := range []store.State{store.Pending, store.InProgress} {
		due := create(r.fresh(), state)
		r.mustForce(due)
		claim := move(due.To, token(store.InProgress, 2))
		claim.IfDue, claim.To.Due = true, long
		r.mustForceLosing(claim)
		rival := move(due.To, token(store.InProgress, 2))
		rival.IfDue = true
		r.mustRefuse(rival, claim.To.Token)
	}
}

func wireHeartbeat[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.InProgress)
	beat := move(rec, rec.Token)
	beat.To.Due = 2 * long
	r.mustForceLosing(beat)
	if got := r.mustRead(rec.ID).Due; !near(got, 2*long) {
		r.Errorf("after a heartbeat of %v, Due = %v", 2*long, got)
	}
	r.mustStand(rec)
}

func wireComplete[Tx any](r *txRig[Tx]) {
	for _, state := range []store.State{store.Succeeded, store.Failed} {
		rec := r.stand(store.InProgress)
		finish := move(rec, store.Token{State: state, Attempt: 1, Owner: rec.Owner})
		finish.To.Outcome = []byte("the end")
		r.mustForceLosing(finish)
		want := rec
		want.Token, want.Outcome = finish.To.Token, finish.To.Outcome
		r.mustStand(want)
	}
}

// A release whose reply was lost is current until the next claim, and does not come
// back afterwards.
func wireRelease[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.InProgress)
	release := move(rec, store.Token{State: store.Pending, Attempt: 1, Owner: rec.Owner})
	r.mustForceLosing(release)
	claim := move(release.To, token(store.InProgress, 2))
	r.mustForce(claim)
	r.mustRefuse(release, claim.To.Token)
}

func wireBatch[Tx any](r *txRig[Tx]) {
	taken := r.stand(store.Succeeded)
	changes := make([]store.Change, 0, 40)
	for range cap(changes) / 2 {
		rec := r.stand(store.InProgress)
		changes = append(changes, create(r.fresh(), store.InProgress), move(rec, token(store.Succeeded, 1)))
	}
	r.mustForceLosing(changes...)
	for _, c := range changes {
		if got := r.mustRead(c.To.ID).Token; got != c.To.Token {
			r.Errorf("after the batch %s stands, want %s", showToken(got), showToken(c.To.Token))
		}
	}
	r.mustStand(taken)
}

func wireNote[Tx any](r *txRig[Tx]) {
	a, ok := r.store.(store.Auditor)
	if !ok {
		r.Skip("the store is no store.Auditor")
	}
	rec := r.stand(store.InDoubt)
	settle := move(rec, token(store.Failed, 1))
	note := store.Note{ID: rec.ID, From: settle.If, To: settle.To.Token, Actor: "ann", Reason: "nothing was sent"}
	var answer store.SwapResult
	r.losingOne(func() {
		r.again(func() (err error) {
			answer, err = a.SwapNoted(r.ctx, settle, note)
			return err
		})
	})
	if !answer.Applied(settle) {
		r.Errorf("SwapNoted after a lost reply = %s, want in force", showAnswer(answer))
	}
	r.mustNote(a, rec.ID, note)
}

// Purged records are gone, even if the reply was lost; the others stay.
func wirePurge[Tx any](r *txRig[Tx]) {
	for range 5 {
		r.expiring(store.Succeeded, -time.Second)
	}
	kept := r.expiring(store.Succeeded, long)
	r.losingOne(func() {
		r.again(func() error {
			_, err := r.store.Purge(r.ctx, 10)
			return err
		})
	})
	r.mustPurge(10, 0)
	r.mustFind(store.Query{}, kept)
}

// What a Dequeue has claimed is known by asking again, and was claimed once.
func wireDequeue[Tx any](r *txRig[Tx]) {
	if why := handsOut(r.subject); why != "" {
		r.Skip(why)
	}
	for range 6 {
		r.waiting(0, 0)
	}
	d := asking(4)
	var got []store.Record
	r.losingOne(func() {
		r.again(func() (err error) {
			got, err = r.store.(store.Dequeuer).Dequeue(r.ctx, d)
			d.Reread = true
			return err
		})
	})
	r.mustFind(store.Query{State: store.InProgress}, got...)
	for _, rec := range got {
		if want := (store.Token{State: store.InProgress, Attempt: 1, Owner: d.Owner}); rec.Token != want {
			r.Errorf("after a lost reply %s is given, want %s", showToken(rec.Token), showToken(want))
		}
	}
	if len(got) < d.Limit {
		r.Errorf("after a lost reply %d records are given, want %d", len(got), d.Limit)
	}
}

// mustCommitLosing runs a transaction and loses the reply to its commit. The
// caller may be told that it committed, or that nothing is known; never that it
// did not.
func (r *txRig[Tx]) mustCommitLosing(id store.ID, hold bool, run runFunc[Tx]) {
	r.Helper()
	r.losingOne(func() {
		verdict, err := r.tx.Atomic(r.ctx, id, hold, run)
		told := verdict == store.Committed && err == nil || verdict == store.Unknown && err != nil
		if !told {
			r.Errorf("Atomic whose commit lost its reply = %v, %v, want Unknown and an error, or Committed", verdict, err)
		}
	})
}

func wireCommit[Tx any](r *txRig[Tx]) {
	c := create(r.fresh(), store.Succeeded)
	c.To.Outcome = []byte("the end")
	r.mustCommitLosing(c.To.ID, true, r.ending("effect", &c, nil))
	r.mustStand(c.To)
	r.mustEffects("effect", 1)
	r.mustForce(c)
	r.mustRaise(c.To.ID, true, r.ending("effect", &c, nil))
	r.mustEffects("effect", 1)
}

// The certificate that nothing was committed is not to be had: the leader finds
// its own end instead.
func wireCommitFinish[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.InProgress)
	finish := move(rec, store.Token{State: store.Succeeded, Attempt: 1, Owner: rec.Owner})
	r.mustCommitLosing(rec.ID, false, r.ending("effect", &finish, nil))
	r.mustEffects("effect", 1)
	r.mustRefuse(move(rec, store.Token{State: store.Failed, Attempt: 1, Owner: rec.Owner}), finish.To.Token)
	r.mustForce(finish)
}

// A failure that is kept is kept, without the effect it undid.
func wireCommitKept[Tx any](r *txRig[Tx]) {
	c := create(r.fresh(), store.Failed)
	c.To.Outcome = []byte("why")
	r.mustCommitLosing(c.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.act(ctx, tx, "effect")
		return &c, errOwn
	})
	r.mustStand(c.To)
	r.mustEffects("effect", 0)
	r.mustForce(c)
}
