package storetest

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// manyCallers is the number of concurrent callers.
const manyCallers = 32

func raceChecks() []storeCheck {
	return []storeCheck{
		{"Create", raceCreate},
		{"Claim", raceClaim},
		{"Takeover", raceTakeover},
		{"FinishAgainstTakeover", raceFinish},
		{"RequeueAgainstTakeover", func(r *harness) { r.raceSweep(store.Pending, store.InProgress) }},
		{"DoubtAgainstFinish", func(r *harness) { r.raceSweep(store.InDoubt, store.Succeeded) }},
		{"Batches", raceBatches},
		{"PurgeAgainstClaim", func(r *harness) { r.racePurge(store.Pending, store.InProgress) }},
		{"PurgeAgainstRedrive", func(r *harness) { r.racePurge(store.Failed, store.Pending) }},
	}
}

// concurrently calls do n times in parallel.
func (r *harness) concurrently(n int, do func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	r.callers(n)
	for i := range n {
		all.Go(func() {
			defer r.callers(-1)
			<-start
			do(i)
		})
	}
	close(start)
	all.Wait()
}

// mustWinOne makes all the changes concurrently, each in its own call, and requires
// that one is applied, that it is current, and that every caller gets its token.
func (r *harness) mustWinOne(changes []store.Change) {
	r.Helper()
	answers := make([]store.SwapResult, len(changes))
	r.concurrently(len(changes), func(i int) {
		got, err := swapAll(r.ctx, r.store, changes[i:i+1])
		if err != nil {
			r.Errorf("Swap: %v", err)
			return
		}
		answers[i] = got[0]
	})
	if r.Failed() {
		return
	}
	current := r.mustRead(changes[0].To.ID).Token
	winners := 0
	for i, answer := range answers {
		if answer.Applied(changes[i]) {
			winners++
		}
		if answer.Token != current {
			r.Errorf("caller %d gets %s, and %s is current", i, showAnswer(answer), showToken(current))
		}
	}
	check.Equal(r, winners, 1, "of %d changes were applied", len(changes))
}

func raceCreate(r *harness) {
	for range 8 {
		rec := r.fresh()
		rec.Due = farAhead
		changes := make([]store.Change, manyCallers)
		for i := range changes {
			changes[i] = create(rec, store.InProgress)
		}
		r.mustWinOne(changes)
	}
}

func raceClaim(r *harness) { r.raceChanges(store.Pending) }

func raceTakeover(r *harness) { r.raceChanges(store.InProgress) }

// raceChanges lets all callers claim a due record in the state.
func (r *harness) raceChanges(state store.State) {
	for range 8 {
		c := create(r.fresh(), state)
		r.mustApply(c)
		changes := make([]store.Change, manyCallers)
		for i := range changes {
			changes[i] = move(c.To, token(store.InProgress, 2))
			changes[i].IfDue = true
			changes[i].To.Due = farAhead
		}
		r.mustWinOne(changes)
	}
}

// A leader whose lease has expired ends its attempt, or is taken over.
func raceFinish(r *harness) {
	for range 8 {
		c := create(r.fresh(), store.InProgress)
		r.mustApply(c)
		changes := make([]store.Change, manyCallers)
		for i := range changes {
			changes[i] = move(c.To, token(store.InProgress, 2))
			changes[i].IfDue = true
			changes[i].To.Due = farAhead
		}
		changes[manyCallers/2] = move(c.To, store.Token{State: store.Succeeded, Attempt: 1, Owner: c.To.Owner})
		r.mustWinOne(changes)
	}
}

// Sweepers with one list move an expired record to one state, while other callers
// move it to another.
func (r *harness) raceSweep(sweep, other store.State) {
	for range 8 {
		rec := r.listed(store.InProgress)
		changes := make([]store.Change, manyCallers)
		for i := range changes {
			changes[i] = move(rec, token(sweep, 1))
			if i%4 == 0 {
				changes[i] = move(rec, token(other, 2))
			}
			changes[i].IfDue, changes[i].To.Due = true, farAhead
		}
		r.mustWinOne(changes)
	}
}

// Batches of the same records in different orders do not hinder each other, and
// each record is won once.
func raceBatches(r *harness) {
	const keys, askers = 16, 8
	recs := make([]store.Record, keys)
	for i := range recs {
		recs[i] = r.fresh()
	}
	var won [keys]atomic.Int32
	r.concurrently(askers, func(int) {
		order := rand.Perm(keys)
		batch := make([]store.Change, keys)
		for i, key := range order {
			batch[i] = create(recs[key], store.InProgress)
		}
		answers, err := swapAll(r.ctx, r.store, batch)
		if err != nil {
			r.Errorf("Swap: %v", err)
			return
		}
		for i, key := range order {
			if answers[i].Applied(batch[i]) {
				won[key].Add(1)
			}
		}
	})
	for key := range won {
		check.Equal(r, won[key].Load(), 1, "record %d was won", key)
	}
}

// A record that is changed while Purge runs stays, and a late change finds no
// record. With a single writer, Purge may find no time to run.
func (r *harness) racePurge(from, to store.State) {
	const keys = 64
	released := make([]store.Record, keys)
	for i := range released {
		released[i] = r.expiring(from, -time.Second)
	}
	claims := make([]store.Change, keys)
	inForce := make([]bool, keys)
	r.concurrently(8, func(asker int) {
		if asker%2 == 0 {
			for range keys / 4 {
				if _, err := r.store.Purge(r.ctx, 4); err != nil && r.caps.Exclusion != store.ExcludesAll {
					r.Errorf("Purge: %v", err)
				}
			}
			return
		}
		for i := asker / 2; i < keys; i += 4 {
			claims[i] = move(released[i], token(to, 2))
			answers, err := swapAll(r.ctx, r.store, claims[i:i+1])
			if err != nil {
				r.Errorf("Swap: %v", err)
				return
			}
			inForce[i] = answers[0].Applied(claims[i])
		}
	})
	for i, won := range inForce {
		if won {
			r.mustHoldRecord(claims[i].To)
		} else {
			r.mustBeAbsent(released[i].ID)
		}
	}
}
