package storetest

import (
	"context"
	"sync"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

func lostReplyChecks() []storeCheck {
	return []storeCheck{
		{"Create", lostReplyToCreate},
		{"Move", lostReplyToMove},
		{"Batch", lostReplyToBatch},
	}
}

// callers is the number of concurrent callers that lose their first reply.
const callers = 50

// replyDropper loses the first reply to each owner's change.
type replyDropper struct {
	store.Store

	mu   sync.Mutex
	sent map[store.Token]bool
}

func (f *replyDropper) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	answers, err := f.Store.Swap(ctx, changes)
	f.mu.Lock()
	defer f.mu.Unlock()
	first := !f.sent[changes[0].To.Token]
	f.sent[changes[0].To.Token] = true
	if first {
		return nil, ErrInjected
	}
	return answers, err
}

// withLostReplies returns the harness with a store that loses every first reply.
func (r *harness) withLostReplies() *harness {
	with := *r
	with.store = &replyDropper{Store: r.store, sent: make(map[store.Token]bool)}
	return &with
}

// swapUntilAnswered repeats the changes until they are answered. It counts lost
// replies.
func (r *harness) swapUntilAnswered(changes ...store.Change) (answers []store.SwapResult, lost int) {
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

// mustWinOneWithLostReplies is a race in which every first reply is lost.
func (r *harness) mustWinOneWithLostReplies(change func() store.Change) store.Change {
	r.Helper()
	changes := make([]store.Change, callers)
	answers := make([]store.SwapResult, callers)
	r.concurrently(callers, func(i int) {
		changes[i] = change()
		got, lost := r.swapUntilAnswered(changes[i])
		check.Equal(r, lost, 1, "caller %d lost: answers", i)
		answers[i] = got[0]
	})
	var winners []store.Change
	for i, answer := range answers {
		if answer.Applied(changes[i]) {
			winners = append(winners, changes[i])
		}
	}
	if len(winners) != 1 {
		r.Fatalf("%d of %d changes are applied, want 1", len(winners), callers)
	}
	for i, answer := range answers {
		if answer.Token != winners[0].To.Token {
			r.Errorf("caller %d gets %s, want %s", i, showAnswer(answer), showToken(winners[0].To.Token))
		}
	}
	return winners[0]
}

// A lost reply turns no leader into a follower.
func lostReplyToCreate(r *harness) {
	rec := r.fresh()
	rec.Due = farAhead
	r = r.withLostReplies()
	won := r.mustWinOneWithLostReplies(func() store.Change { return create(rec, store.InProgress) })
	finish := move(won.To, store.Token{State: store.Succeeded, Attempt: 1, Owner: won.To.Owner})
	if answers, lost := r.swapUntilAnswered(finish); lost != 1 || !answers[0].Applied(finish) {
		r.Errorf("the finish after %d lost answers = %s, want applied after 1", lost, showAnswer(answers[0]))
	}
}

func lostReplyToMove(r *harness) {
	c := create(r.fresh(), store.Pending)
	r.mustApply(c)
	r = r.withLostReplies()
	r.mustWinOneWithLostReplies(func() store.Change {
		claim := move(c.To, token(store.InProgress, 2))
		claim.IfDue, claim.To.Due = true, farAhead
		return claim
	})
}

// A batch whose reply was lost is answered when it is repeated.
func lostReplyToBatch(r *harness) {
	taken, running := r.mustCreateIn(store.Succeeded), r.mustCreateIn(store.InProgress)
	r = r.withLostReplies()
	changes := []store.Change{
		create(r.fresh(), store.InProgress),
		create(taken, store.InProgress),
		move(running, token(store.Succeeded, 1)),
	}
	answers, lost := r.swapUntilAnswered(changes...)
	check.Equal(r, lost, 1, "answers were lost")
	r.checkRejected(changes[1], answers[1], taken.Token)
	for _, i := range []int{0, 2} {
		if !answers[i].Applied(changes[i]) {
			r.Errorf("%s after a lost answer = %s, want applied", show(changes[i]), showAnswer(answers[i]))
		}
	}
}
