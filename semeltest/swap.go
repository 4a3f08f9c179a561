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
	for _, state := range store.States() {
		r.mustCreateOnce(r.stand(state))
	}
}

func (r *rig) mustCreateOnce(first store.Record) {
	r.Helper()
	second := first
	second.Fingerprint, second.Outcome = []byte("other"), []byte("other")
	for _, state := range store.States() {
		r.mustRefuse(create(second, state), first.Token)
	}
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
	if got := r.mustRead(rec.ID); got.Due > long-r.soon()/2 || got.Since < r.soon() {
		r.Errorf("asked again, Due is %v and Since %v: it was written again", got.Due, got.Since)
	}
	finish := move(claim.To, token(store.Succeeded, 1))
	r.mustForce(finish)
	r.mustForce(finish)
}

// A change that is repeated after a later change is superseded, and has no effect.
func askedAgainLate(r *rig) {
	rec := r.stand(store.InProgress)
	release := move(rec, token(store.Pending, 1))
	r.mustForce(release)
	claim := move(release.To, token(store.InProgress, 2))
	r.mustForce(claim)
	r.mustRefuse(release, claim.To.Token)
	finish := move(claim.To, token(store.Succeeded, 2))
	r.mustForce(finish)
	r.mustRefuse(claim, finish.To.Token)
}

// What stands instead is shown whole.
func showsWhatStands(r *rig) {
	for _, state := range store.States() {
		rec := r.stand(state)
		if diff := diffRecords(r.shown(rec), rec); diff != "" {
			r.Errorf("what stands is shown otherwise (-want +got):\n%s", diff)
		}
	}
}

// shown returns the current record as Swap returns it for a superseded change.
func (r *rig) shown(rec store.Record) store.Record {
	r.Helper()
	answer := r.swap(stale(rec, store.Succeeded))[0]
	if answer.Record == nil {
		r.Fatalf("a stale change = %s, without a Record", showAnswer(answer))
	}
	return *answer.Record
}

// stale is a change of what stood long before rec.
func stale(rec store.Record, to store.State) store.Change {
	rec.Token = token(otherThan(rec.State), rec.Attempt+7)
	return move(rec, token(to, rec.Attempt))
}

func otherThan(s store.State) store.State {
	if s == store.Pending {
		return store.InProgress
	}
	return store.Pending
}
