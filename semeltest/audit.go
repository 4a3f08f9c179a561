package semeltest

import (
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/semelgo/semel/store"
)

// auditChecks are for stores that keep notes.
func auditChecks() []storeCheck {
	return []storeCheck{
		{"Kept", ifAuditor(noteKept)},
		{"Once", ifAuditor(noteOnce)},
		{"NotInForce", ifAuditor(noteNotInForce)},
		{"Order", ifAuditor(notesInOrder)},
		{"OutlivesRecord", ifAuditor(noteOutlivesRecord)},
	}
}

func ifAuditor(run func(r *rig, a store.Auditor)) func(*rig) {
	return func(r *rig) {
		a, ok := r.store.(store.Auditor)
		if !ok {
			r.Skip("the store is no store.Auditor")
		}
		run(r, a)
	}
}

// resolve settles rec with a note, and returns the note that should be kept.
func (r *rig) resolve(a store.Auditor, c store.Change, reason string) (store.SwapResult, store.Note) {
	r.Helper()
	note := store.Note{ID: c.To.ID, From: c.If, To: c.To.Token, Actor: "ann\x00é", Reason: reason}
	for {
		answer, err := a.SwapNoted(r.ctx, c, note)
		if err != nil {
			r.Fatalf("SwapNoted: %v", err)
		}
		if !answer.Busy {
			return answer, note
		}
		if pause(r.ctx) != nil {
			r.Fatal("SwapNoted is Busy for ever")
		}
	}
}

func (r *rig) mustNote(a store.Auditor, id store.ID, want ...store.Note) {
	r.Helper()
	got, err := a.Notes(r.ctx, id)
	if err != nil {
		r.Fatalf("Notes: %v", err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(store.Note{}, "Age")); diff != "" {
		r.Errorf("Notes differ (-want +got):\n%s", diff)
	}
}

func noteKept(r *rig, a store.Auditor) {
	rec := r.stand(store.InDoubt)
	settle := move(rec, token(store.Succeeded, 1))
	settle.To.Outcome = []byte("found")
	answer, note := r.resolve(a, settle, "seen in the ledger")
	if !answer.Applied(settle) {
		r.Fatalf("SwapNoted = %s, want in force", showAnswer(answer))
	}
	if got := r.mustRead(rec.ID); got.Token != settle.To.Token || string(got.Outcome) != "found" {
		r.Errorf("%s stands with outcome %q, want what was resolved", showToken(got.Token), got.Outcome)
	}
	r.mustNote(a, rec.ID, note)
	r.pass(rec.ID, func(got store.Record) bool { return got.Since >= r.soon() })
	if got, err := a.Notes(r.ctx, rec.ID); err != nil || got[0].Age < r.soon()/2 {
		r.Errorf("%v later the note's Age is %v, %v", r.soon(), got[0].Age, err)
	}
}

// Asked again it keeps no second note.
func noteOnce(r *rig, a store.Auditor) {
	rec := r.stand(store.InDoubt)
	settle := move(rec, token(store.Failed, 1))
	_, note := r.resolve(a, settle, "nothing was sent")
	if answer, _ := r.resolve(a, settle, "nothing was sent"); !answer.Applied(settle) {
		r.Errorf("SwapNoted asked again = %s, want in force", showAnswer(answer))
	}
	r.mustNote(a, rec.ID, note)
}

func noteNotInForce(r *rig, a store.Auditor) {
	rec := r.stand(store.Succeeded)
	doubted := rec
	doubted.Token = token(store.InDoubt, 1)
	settle := move(doubted, token(store.Failed, 1))
	answer, _ := r.resolve(a, settle, "too late")
	r.refused(settle, answer, rec.Token)
	r.mustNote(a, rec.ID)
	r.mustStand(rec)
}

func notesInOrder(r *rig, a store.Auditor) {
	rec := r.stand(store.InDoubt)
	again := move(rec, token(store.Pending, 1))
	_, first := r.resolve(a, again, "try again")
	doubt := move(again.To, token(store.InDoubt, 2))
	r.mustForce(doubt)
	_, second := r.resolve(a, move(doubt.To, token(store.Failed, 2)), "give up")
	other := r.stand(store.InDoubt)
	r.mustNote(a, rec.ID, first, second)
	r.mustNote(a, other.ID)
}

// Notes are kept for ever.
func noteOutlivesRecord(r *rig, a store.Auditor) {
	rec := r.stand(store.InDoubt)
	settle := move(rec, token(store.Failed, 1))
	settle.To.Expire = -time.Second
	_, note := r.resolve(a, settle, "nothing was sent")
	r.mustPurge(10, 1)
	r.mustNote(a, rec.ID, note)
}
