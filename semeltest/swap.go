package semeltest

import "github.com/semelgo/semel/store"

func swapChecks() []storeCheck {
	return []storeCheck{
		{"CreateOnce", createOnce},
		{"CreateEachState", createEachState},
		{"State", tokenState},
		{"Attempt", tokenAttempt},
		{"Owner", tokenOwner},
		{"NothingStands", nothingStands},
		{"AskedAgain", askedAgain},
		{"AskedAgainLate", askedAgainLate},
		{"ShowsWhatStands", showsWhatStands},
	}
}

// A create meets nothing but an absent record.
func createOnce(r *rig) {
	first := r.stand(store.InProgress)
	second := first
	second.Fingerprint, second.Outcome = []byte("other"), []byte("other")
	r.mustRefuse(create(second, store.InProgress), first.Token)
	r.mustRefuse(create(second, store.Succeeded), first.Token)
	r.mustStand(first)
}

func createEachState(r *rig) {
	for _, state := range store.States() {
		r.mustStand(r.stand(state))
	}
}

// A change whose If differs from what stands in one part of the token only is
// not made.
func tokenState(r *rig) {
	r.mustNotMatch(func(t *store.Token) { t.State = store.Pending })
}

func tokenAttempt(r *rig) {
	r.mustNotMatch(func(t *store.Token) { t.Attempt++ })
	r.mustNotMatch(func(t *store.Token) { t.Attempt-- })
}

func tokenOwner(r *rig) {
	r.mustNotMatch(func(t *store.Token) { t.Owner ^= 1 })
	r.mustNotMatch(func(t *store.Token) { t.Owner ^= 1 << 63 })
}

func (r *rig) mustNotMatch(differ func(*store.Token)) {
	r.Helper()
	rec := r.fresh()
	rec.Due, rec.Outcome = long, []byte("kept")
	c := create(rec, store.InProgress)
	c.To.Attempt = 5
	r.mustForce(c)
	wrong := c.To
	differ(&wrong.Token)
	finish := move(wrong, token(store.Succeeded, 6))
	finish.To.Outcome = []byte("not this")
	r.mustRefuse(finish, c.To.Token)
	r.mustStand(c.To)
}

// A change of a record that is not there creates none.
func nothingStands(r *rig) {
	rec := r.fresh()
	rec.Token = token(store.InProgress, 1)
	r.mustRefuse(move(rec, token(store.Succeeded, 1)), store.Token{})
	r.mustBeAbsent(rec.ID)
}

// A change that is in force is in force when asked for again, and nothing
// happens twice.
func askedAgain(r *rig) {
	rec := r.fresh()
	rec.Due, rec.Outcome = long, []byte("outcome")
	claim := create(rec, store.InProgress)
	r.mustForce(claim)
	r.pass(rec.ID, r.aged)
	r.mustForce(claim)
	r.mustStand(claim.To)
	if got := r.mustRead(rec.ID); got.Due > long-r.soon() || got.Since < r.soon() {
		r.Errorf("asked again, Due is %v and Since %v: it was written again", got.Due, got.Since)
	}
	finish := move(claim.To, token(store.Succeeded, 1))
	r.mustForce(finish)
	r.mustForce(finish)
}

// Asked again after somebody went on, a change is not in force, and does not
// come back.
func askedAgainLate(r *rig) {
	rec := r.stand(store.InProgress)
	release := move(rec, token(store.Pending, 1))
	r.mustForce(release)
	claim := move(release.To, token(store.InProgress, 2))
	r.mustForce(claim)
	r.mustRefuse(release, claim.To.Token)
	r.mustRefuse(store.Change{To: rec}, claim.To.Token)
}

// What stands instead is shown whole.
func showsWhatStands(r *rig) {
	rec := r.stand(store.Succeeded)
	answer := r.swap(create(rec, store.InProgress))[0]
	if answer.Record == nil {
		r.Fatal("something else stands, and the answer does not show it")
	}
	if diff := diffRecords(*answer.Record, rec); diff != "" {
		r.Errorf("what stands is shown otherwise (-want +got):\n%s", diff)
	}
	wrong := rec
	wrong.Token = token(store.InProgress, 1)
	answer = r.swap(move(wrong, token(store.Succeeded, 1)))[0]
	if answer.Record == nil {
		r.Fatal("something else stands, and the answer does not show it")
	}
	if diff := diffRecords(*answer.Record, rec); diff != "" {
		r.Errorf("what stands is shown otherwise (-want +got):\n%s", diff)
	}
}
