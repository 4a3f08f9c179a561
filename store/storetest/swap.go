package storetest

import "github.com/semelgo/semel/store"

func swapChecks() []storeCheck {
	return []storeCheck{
		{"CreateOnce", createOnce},
		{"CreateEachState", createEachState},
		{"State", tokenState},
		{"Attempt", tokenAttempt},
		{"Owner", tokenOwner},
		{"Absent", swapAbsent},
		{"Repeated", swapRepeated},
		{"RepeatedLate", swapRepeatedLate},
		{"ReturnsCurrent", swapReturnsCurrent},
	}
}

// A create is applied only if the record is absent.
func createOnce(r *harness) {
	for _, state := range store.States() {
		r.mustCreateOnce(r.mustCreateIn(state))
	}
}

func (r *harness) mustCreateOnce(first store.Record) {
	r.Helper()
	second := first
	second.Fingerprint, second.Outcome = []byte("other"), []byte("other")
	for _, state := range store.States() {
		r.mustReject(create(second, state), first.Token)
	}
	r.mustHoldRecord(first)
}

func createEachState(r *harness) {
	for _, state := range store.States() {
		r.mustHoldRecord(r.mustCreateIn(state))
	}
}

// A change whose If differs from the current token in one part is not applied.
func tokenState(r *harness) {
	r.mustNotMatch(func(t *store.Token) { t.State = store.Pending })
}

func tokenAttempt(r *harness) {
	r.mustNotMatch(func(t *store.Token) { t.Attempt++ })
	r.mustNotMatch(func(t *store.Token) { t.Attempt-- })
}

func tokenOwner(r *harness) {
	r.mustNotMatch(func(t *store.Token) { t.Owner ^= 1 })
	r.mustNotMatch(func(t *store.Token) { t.Owner ^= 1 << 63 })
}

func (r *harness) mustNotMatch(differ func(*store.Token)) {
	r.Helper()
	rec := r.fresh()
	rec.Due, rec.Outcome = farAhead, []byte("kept")
	c := create(rec, store.InProgress)
	c.To.Attempt = 5
	r.mustApply(c)
	wrong := c.To
	differ(&wrong.Token)
	finish := move(wrong, token(store.Succeeded, 6))
	finish.To.Outcome = []byte("not this")
	r.mustReject(finish, c.To.Token)
	r.mustHoldRecord(c.To)
}

// A move of an absent record creates none.
func swapAbsent(r *harness) {
	rec := r.fresh()
	rec.Token = token(store.InProgress, 1)
	r.mustReject(move(rec, token(store.Succeeded, 1)), store.Token{})
	r.mustBeAbsent(rec.ID)
}

// A repeated change is applied again without a second effect.
func swapRepeated(r *harness) {
	rec := r.fresh()
	rec.Due, rec.Outcome = farAhead, []byte("outcome")
	claim := create(rec, store.InProgress)
	r.mustApply(claim)
	r.passTime(rec.ID, r.aged)
	r.mustApply(claim)
	r.mustHoldRecord(claim.To)
	if got := r.mustRead(rec.ID); got.Due > farAhead-r.shortTime()/2 || got.Since < r.shortTime() {
		r.Errorf("after a repeated change, Due is %v and Since %v: it was written again", got.Due, got.Since)
	}
	finish := move(claim.To, token(store.Succeeded, 1))
	r.mustApply(finish)
	r.mustApply(finish)
}

// A change that is repeated after a later change is superseded, and has no effect.
func swapRepeatedLate(r *harness) {
	rec := r.mustCreateIn(store.InProgress)
	release := move(rec, token(store.Pending, 1))
	r.mustApply(release)
	claim := move(release.To, token(store.InProgress, 2))
	r.mustApply(claim)
	r.mustReject(release, claim.To.Token)
	finish := move(claim.To, token(store.Succeeded, 2))
	r.mustApply(finish)
	r.mustReject(claim, finish.To.Token)
}

// The superseding record is returned completely.
func swapReturnsCurrent(r *harness) {
	for _, state := range store.States() {
		rec := r.mustCreateIn(state)
		if diff := diffRecords(r.mustReturnCurrent(rec), rec); diff != "" {
			r.Errorf("the current record differs (-want +got):\n%s", diff)
		}
	}
}

// mustReturnCurrent returns the current record as Swap returns it for a superseded change.
func (r *harness) mustReturnCurrent(rec store.Record) store.Record {
	r.Helper()
	answer := r.swap(stale(rec, store.Succeeded))[0]
	if answer.Record == nil {
		r.Fatalf("a stale change = %s, without a Record", showAnswer(answer))
	}
	return *answer.Record
}

// stale is a change of an older version of rec.
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
