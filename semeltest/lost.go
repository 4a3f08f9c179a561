package semeltest

import (
	"context"
	"sync"

	"github.com/semelgo/semel/store"
)

func lostChecks() []storeCheck {
	return []storeCheck{
		{"Create", lostCreate},
		{"Move", lostMove},
		{"Batch", lostBatch},
	}
}

// askers is how many callers lose their first reply.
const askers = 50

// forgetful loses the first answer to each owner's change.
type forgetful struct {
	store.Store

	mu    sync.Mutex
	asked map[store.Token]bool
}

func (f *forgetful) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	answers, err := f.Store.Swap(ctx, changes)
	f.mu.Lock()
	defer f.mu.Unlock()
	first := !f.asked[changes[0].To.Token]
	f.asked[changes[0].To.Token] = true
	if first {
		return nil, ErrInjected
	}
	return answers, err
}

// losing returns the rig with a store that loses every first answer.
func (r *rig) losing() *rig {
	with := *r
	with.store = &forgetful{Store: r.store, asked: make(map[store.Token]bool)}
	return &with
}

// ask asks for the changes until there is an answer. It counts what was lost.
func (r *rig) ask(changes ...store.Change) (answers []store.SwapResult, lost int) {
	for {
		answers, err := swapAll(r.ctx, r.store, changes)
		if err == nil {
			return answers, lost
		}
		if lost++; lost > 1 {
			r.Errorf("Swap: %v", err)
			return make([]store.SwapResult, len(changes)), lost
		}
	}
}

// mustWinOneLosing is a race in which everybody's first answer is lost.
func (r *rig) mustWinOneLosing(change func() store.Change) store.Change {
	r.Helper()
	changes := make([]store.Change, askers)
	answers := make([]store.SwapResult, askers)
	together(askers, func(i int) {
		changes[i] = change()
		got, lost := r.ask(changes[i])
		if lost != 1 {
			r.Errorf("asker %d lost %d answers, want 1", i, lost)
		}
		answers[i] = got[0]
	})
	var winners []store.Change
	for i, answer := range answers {
		if answer.Applied(changes[i]) {
			winners = append(winners, changes[i])
		}
	}
	if len(winners) != 1 {
		r.Fatalf("%d of %d changes are in force, want 1", len(winners), askers)
	}
	for i, answer := range answers {
		if answer.Token != winners[0].To.Token {
			r.Errorf("asker %d is told that %s stands, want %s", i, showAnswer(answer), showToken(winners[0].To.Token))
		}
	}
	return winners[0]
}

// A lost reply makes no caller its own follower.
func lostCreate(r *rig) {
	rec := r.fresh()
	rec.Due = long
	r = r.losing()
	won := r.mustWinOneLosing(func() store.Change { return create(rec, store.InProgress) })
	finish := move(won.To, store.Token{State: store.Succeeded, Attempt: 1, Owner: won.To.Owner})
	if answers, lost := r.ask(finish); lost != 1 || !answers[0].Applied(finish) {
		r.Errorf("the finish after %d lost answers = %s, want in force after 1", lost, showAnswer(answers[0]))
	}
}

func lostMove(r *rig) {
	c := create(r.fresh(), store.Pending)
	r.mustForce(c)
	r = r.losing()
	r.mustWinOneLosing(func() store.Change {
		claim := move(c.To, token(store.InProgress, 2))
		claim.IfDue, claim.To.Due = true, long
		return claim
	})
}

// A batch whose answers were lost is answered when asked for again.
func lostBatch(r *rig) {
	taken, running := r.stand(store.Succeeded), r.stand(store.InProgress)
	r = r.losing()
	changes := []store.Change{
		create(r.fresh(), store.InProgress),
		create(taken, store.InProgress),
		move(running, token(store.Succeeded, 1)),
	}
	answers, lost := r.ask(changes...)
	if lost != 1 {
		r.Errorf("%d answers were lost, want 1", lost)
	}
	r.refused(changes[1], answers[1], taken.Token)
	for _, i := range []int{0, 2} {
		if !answers[i].Applied(changes[i]) {
			r.Errorf("%s after a lost answer = %s, want in force", show(changes[i]), showAnswer(answers[i]))
		}
	}
}
