package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// againChecks disconnect what a change needs for its confirmation, the replicas or the
// disk of the store, and repeat changes that are not confirmed.
func againChecks() []checkCase[*harness] {
	return []checkCase[*harness]{{"NotYetSafe", againNotYetSafe}, {"Dequeue", againDequeue}}
}

// againTxChecks do that with transactions.
func againTxChecks[Tx any]() []checkCase[*txHarness[Tx]] {
	return []checkCase[*txHarness[Tx]]{{"NotYetSafe", againTxNotYetSafe[Tx]}}
}

// lacksIsolate returns why a store cannot be isolated.
func (r *harness) lacksIsolate() string {
	if r.isolate == nil {
		return "Subject.Isolate is nil"
	}
	return ""
}

const (
	// isolatedTimeout is how long a caller waits for an isolated store.
	isolatedTimeout = time.Second
	// isolatedTries is how often a change is repeated meanwhile: the first
	// retry may find the record still locked by the call that has timed out.
	isolatedTries = 4
)

// replicaCall is a call that asks for changes while the replicas, or the disk, are away.
type replicaCall struct {
	name    string
	changes []store.Change
	call    func(ctx context.Context, changes []store.Change) (applied bool)
}

// A change that is not confirmed is not reported as applied, neither by the call that
// makes it nor by one that finds it applied, and its final state is not shown: a failover
// or a power loss would take both back.
func againNotYetSafe(r *harness) {
	running, pending := r.mustCreateIn(store.InProgress), r.mustCreateIn(store.Pending)
	batch := make([]store.Change, 6)
	for i := range batch {
		batch[i] = create(r.freshDue(), store.InProgress)
	}
	swap := func(ctx context.Context, changes []store.Change) bool { return swapWithin(ctx, r.store, changes) }
	r.mustConfirmLater([]replicaCall{
		{"claim", []store.Change{create(r.freshDue(), store.InProgress)}, swap},
		{"create that is final", []store.Change{create(r.fresh(), store.Succeeded)}, swap},
		{"end", []store.Change{move(running, store.Token{State: store.Succeeded, Attempt: 1, Owner: running.Owner})}, swap},
		{"cancel", []store.Change{move(pending, token(store.Failed, 1))}, swap},
		{"batch", batch, swap},
	}, isolatedTries)
}

// The same with the last change of a transaction, which is repeated by Swap too.
func againTxNotYetSafe[Tx any](r *txHarness[Tx]) {
	calls := []replicaCall{{"Atomic", []store.Change{create(r.fresh(), store.Succeeded)}, r.commitsWithin}}
	if r.subject.Batches != nil {
		calls = append(calls, replicaCall{"AtomicBatch", []store.Change{create(r.fresh(), store.Succeeded)}, r.batchCommitsWithin})
	}
	r.mustConfirmLater(calls, 0)
}

// mustConfirmLater isolates the store, makes the calls, and repeats their changes that
// often. It requires that the changes are confirmed afterwards, and not before.
func (r *harness) mustConfirmLater(calls []replicaCall, tries int) {
	r.Helper()
	restore := r.isolate()
	r.Cleanup(restore)
	r.concurrently(len(calls), func(i int) {
		c := calls[i]
		if c.call(r.ctx, c.changes) {
			r.Errorf("%s: applied while isolated", c.name)
		}
		for range tries {
			r.mustNotConfirm(c)
		}
	})
	restore()
	for _, c := range calls {
		var answers []store.SwapResult
		r.retryUntilAnswered(func() (err error) {
			answers, err = swapAll(r.ctx, r.store, c.changes)
			return err
		})
		for i, change := range c.changes {
			if !answers[i].Applied(change) {
				r.Errorf("%s: after the isolation, %s = %s, want applied", c.name, show(change), showAnswer(answers[i]))
			}
		}
	}
}

// mustNotConfirm repeats the changes, and reads the records, of an isolated store.
func (r *harness) mustNotConfirm(c replicaCall) {
	r.Helper()
	if swapWithin(r.ctx, r.store, c.changes) {
		r.Errorf("%s: the repeated change is applied while isolated", c.name)
	}
	ids := make([]store.ID, len(c.changes))
	for i, change := range c.changes {
		ids[i] = change.To.ID
	}
	ctx, cancel := context.WithTimeout(r.ctx, isolatedTimeout)
	defer cancel()
	answers, err := r.store.Get(ctx, ids)
	for i, answer := range answers {
		if err == nil && answer.Token.State.Final() && answer.Token == c.changes[i].To.Token {
			r.Errorf("%s: Get shows %s while isolated", c.name, showToken(answer.Token))
		}
	}
}

// Claims that are not confirmed are not returned, neither by the Dequeue that makes them
// nor by one that repeats it or rereads.
func againDequeue(r *harness) {
	if why := r.lacksDequeue(); why != "" {
		r.Skip(why)
	}
	for range 4 {
		r.createPending(0, 0)
	}
	claim := dequeueOf(2)
	reread := claim
	reread.Reread = true
	restore := r.isolate()
	r.Cleanup(restore)
	for range isolatedTries {
		for _, d := range []store.Dequeue{claim, reread} {
			if got := r.dequeueWithin(d); len(got) > 0 {
				r.Errorf("Dequeue(%+v) returns %d claims while isolated", d, len(got))
			}
		}
	}
	restore()
	var got []store.Record
	r.retryUntilAnswered(func() (err error) {
		if got, err = r.store.(store.Dequeuer).Dequeue(r.ctx, claim); err == nil && len(got) == 0 {
			err = errors.New("an earlier call has not ended")
		}
		return err
	})
	check.Equal(r, len(got), claim.Limit, "after the isolation, Dequeue returns: claims")
	if again := r.dequeue(reread); !sameIDs(idsOf(again), idsOf(got)) {
		r.Errorf("after the isolation, a Dequeue that rereads returns %v, want %v", idsOf(again), idsOf(got))
	}
}

// dequeueWithin dequeues with the time limit of an isolated store.
func (r *harness) dequeueWithin(d store.Dequeue) []store.Record {
	ctx, cancel := context.WithTimeout(r.ctx, isolatedTimeout)
	defer cancel()
	got, err := r.store.(store.Dequeuer).Dequeue(ctx, d)
	if err != nil {
		return nil
	}
	return got
}

// freshDue returns the identity of an absent record with a lease that lasts.
func (r *harness) freshDue() store.Record {
	rec := r.fresh()
	rec.Due = farAhead
	return rec
}

// swapWithin makes the changes with the time limit of an isolated store, and reports
// whether one of them was applied.
func swapWithin(ctx context.Context, s store.Store, changes []store.Change) bool {
	ctx, cancel := context.WithTimeout(ctx, isolatedTimeout)
	defer cancel()
	answers, err := s.Swap(ctx, changes)
	for i := range answers {
		if err == nil && answers[i].Applied(changes[i]) {
			return true
		}
	}
	return false
}

// commitsWithin commits the change in a transaction.
func (r *txHarness[Tx]) commitsWithin(ctx context.Context, changes []store.Change) bool {
	ctx, cancel := context.WithTimeout(ctx, isolatedTimeout)
	defer cancel()
	verdict, err := r.tx.Atomic(ctx, changes[0].To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.addEffect(ctx, tx, changes[0].To.Key)
		return &changes[0], nil
	})
	return verdict == store.Committed || err == nil
}

// batchCommitsWithin commits the change with a batch of statements.
func (r *txHarness[Tx]) batchCommitsWithin(ctx context.Context, changes []store.Change) bool {
	ctx, cancel := context.WithTimeout(ctx, isolatedTimeout)
	defer cancel()
	answer, verdict, err := r.subject.Batches.send(ctx, changes[0], true, []Statement{{Effect: changes[0].To.Key}})
	return verdict == store.Committed || err == nil && answer.Applied(changes[0])
}
