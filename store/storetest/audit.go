package storetest

import (
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// auditChecks test stores that keep notes.
func auditChecks() []storeCheck {
	return []storeCheck{
		{"Kept", ifAuditor(noteKept)},
		{"Once", ifAuditor(noteOnce)},
		{"Superseded", ifAuditor(noteSuperseded)},
		{"Order", ifAuditor(notesInOrder)},
		{"OutlivesRecord", ifAuditor(noteOutlivesRecord)},
	}
}

func ifAuditor(run func(r *harness, a store.Auditor)) func(*harness) {
	return func(r *harness) {
		a, ok := r.store.(store.Auditor)
		if !ok {
			r.Skip("the store is no store.Auditor")
		}
		run(r, a)
	}
}

// resolve settles rec with a note, and returns the note that should be kept.
func (r *harness) resolve(a store.Auditor, c store.Change, reason string) (store.SwapResult, store.Note) {
	r.Helper()
	note := store.Note{ID: c.To.ID, From: c.If, To: c.To.Token, Actor: "ann\x00é", Reason: reason}
	for {
		answer, err := a.SwapNoted(r.ctx, c, note)
		check.Require(r, err, "SwapNoted")
		if !answer.Busy {
			return answer, note
		}
		if pause(r.ctx) != nil {
			r.Fatal("SwapNoted is Busy for ever")
		}
	}
}

func (r *harness) mustNote(a store.Auditor, id store.ID, want ...store.Note) {
	r.Helper()
	got, err := a.Notes(r.ctx, id)
	check.Require(r, err, "Notes")
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(store.Note{}, "Age")); diff != "" {
		r.Errorf("Notes differ (-want +got):\n%s", diff)
	}
}

func noteKept(r *harness, a store.Auditor) {
	rec := r.mustCreateIn(store.InDoubt)
	settle := move(rec, token(store.Succeeded, 1))
	settle.To.Outcome = []byte("found")
	answer, note := r.resolve(a, settle, "seen in the ledger")
	if !answer.Applied(settle) {
		r.Fatalf("SwapNoted = %s, want applied", showAnswer(answer))
	}
	if got := r.mustRead(rec.ID); got.Token != settle.To.Token || string(got.Outcome) != "found" {
		r.Errorf("%s is current with outcome %q, want the resolved one", showToken(got.Token), got.Outcome)
	}
	r.mustNote(a, rec.ID, note)
	r.passTime(rec.ID, func(got store.Record) bool { return got.Since >= r.shortTime() })
	if got, err := a.Notes(r.ctx, rec.ID); err != nil || got[0].Age < r.shortTime()/2 {
		r.Errorf("%v later the note's Age is %v, %v", r.shortTime(), got[0].Age, err)
	}
}

// A repeated change keeps no second note.
func noteOnce(r *harness, a store.Auditor) {
	rec := r.mustCreateIn(store.InDoubt)
	settle := move(rec, token(store.Failed, 1))
	_, note := r.resolve(a, settle, "nothing was sent")
	if answer, _ := r.resolve(a, settle, "nothing was sent"); !answer.Applied(settle) {
		r.Errorf("repeated SwapNoted = %s, want applied", showAnswer(answer))
	}
	r.mustNote(a, rec.ID, note)
}

func noteSuperseded(r *harness, a store.Auditor) {
	rec := r.mustCreateIn(store.Succeeded)
	doubted := rec
	doubted.Token = token(store.InDoubt, 1)
	settle := move(doubted, token(store.Failed, 1))
	answer, _ := r.resolve(a, settle, "too late")
	r.checkRejected(settle, answer, rec.Token)
	r.mustNote(a, rec.ID)
	r.mustHoldRecord(rec)
}

func notesInOrder(r *harness, a store.Auditor) {
	rec := r.mustCreateIn(store.InDoubt)
	again := move(rec, token(store.Pending, 1))
	_, first := r.resolve(a, again, "try again")
	doubt := move(again.To, token(store.InDoubt, 2))
	r.mustApply(doubt)
	_, second := r.resolve(a, move(doubt.To, token(store.Failed, 2)), "give up")
	other := r.mustCreateIn(store.InDoubt)
	r.mustNote(a, rec.ID, first, second)
	r.mustNote(a, other.ID)
}

// Notes are kept for ever.
func noteOutlivesRecord(r *harness, a store.Auditor) {
	rec := r.mustCreateIn(store.InDoubt)
	settle := move(rec, token(store.Failed, 1))
	settle.To.Expire = -time.Second
	_, note := r.resolve(a, settle, "nothing was sent")
	r.mustPurge(10, 1)
	r.mustNote(a, rec.ID, note)
}
