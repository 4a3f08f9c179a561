package semeltest

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/store"
)

// crowd is how many ask at once.
const crowd = 32

func raceChecks() []storeCheck {
	return []storeCheck{
		{"Create", raceCreate},
		{"Claim", raceClaim},
		{"Takeover", raceTakeover},
		{"FinishAgainstTakeover", raceFinish},
		{"RequeueAgainstTakeover", func(r *rig) { r.raceSweep(store.Pending, store.InProgress) }},
		{"DoubtAgainstFinish", func(r *rig) { r.raceSweep(store.InDoubt, store.Succeeded) }},
		{"Batches", raceBatches},
		{"PurgeAgainstClaim", func(r *rig) { r.racePurge(store.Pending, store.InProgress) }},
		{"PurgeAgainstRedrive", func(r *rig) { r.racePurge(store.Failed, store.Pending) }},
	}
}

// together calls do n times at once.
func together(n int, do func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	all.Wait()
}

// mustWinOne asks for all the changes at once, each by itself, and requires that
// one of them is in force, that everybody is told of it, and that it stands.
func (r *rig) mustWinOne(changes []store.Change) {
	r.Helper()
	answers := make([]store.SwapResult, len(changes))
	together(len(changes), func(i int) {
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
	stands := r.mustRead(changes[0].To.ID).Token
	winners := 0
	for i, answer := range answers {
		if answer.Applied(changes[i]) {
			winners++
		}
		if answer.Token != stands {
			r.Errorf("asker %d is told that %s stands, and %s does", i, showAnswer(answer), showToken(stands))
		}
	}
	if winners != 1 {
		r.Errorf("%d of %d changes were in force, want 1", winners, len(changes))
	}
}

func raceCreate(r *rig) {
	for range 8 {
		rec := r.fresh()
		rec.Due = long
		changes := make([]store.Change, crowd)
		for i := range changes {
			changes[i] = create(rec, store.InProgress)
		}
		r.mustWinOne(changes)
	}
}

func raceClaim(r *rig) { r.raceFor(store.Pending) }

func raceTakeover(r *rig) { r.raceFor(store.InProgress) }

// raceFor lets everybody claim a due record in the state.
func (r *rig) raceFor(state store.State) {
	for range 8 {
		c := create(r.fresh(), state)
		r.mustForce(c)
		changes := make([]store.Change, crowd)
		for i := range changes {
			changes[i] = move(c.To, token(store.InProgress, 2))
			changes[i].IfDue = true
			changes[i].To.Due = long
		}
		r.mustWinOne(changes)
	}
}

// A leader whose lease is over finishes, or is taken over.
func raceFinish(r *rig) {
	for range 8 {
		c := create(r.fresh(), store.InProgress)
		r.mustForce(c)
		changes := make([]store.Change, crowd)
		for i := range changes {
			changes[i] = move(c.To, token(store.InProgress, 2))
			changes[i].IfDue = true
			changes[i].To.Due = long
		}
		changes[crowd/2] = move(c.To, store.Token{State: store.Succeeded, Attempt: 1, Owner: c.To.Owner})
		r.mustWinOne(changes)
	}
}

// Sweepers with one list take a record whose lease is over to one state, while
// others take it to another.
func (r *rig) raceSweep(sweep, other store.State) {
	for range 8 {
		rec := r.listed(store.InProgress)
		changes := make([]store.Change, crowd)
		for i := range changes {
			changes[i] = move(rec, token(sweep, 1))
			if i%4 == 0 {
				changes[i] = move(rec, token(other, 2))
			}
			changes[i].IfDue, changes[i].To.Due = true, long
		}
		r.mustWinOne(changes)
	}
}

// Batches of the same records in different orders do not hinder each other, and
// each record is won once.
func raceBatches(r *rig) {
	const keys, askers = 16, 8
	recs := make([]store.Record, keys)
	for i := range recs {
		recs[i] = r.fresh()
	}
	var won [keys]atomic.Int32
	together(askers, func(int) {
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
		if n := won[key].Load(); n != 1 {
			r.Errorf("record %d was won %d times, want 1", key, n)
		}
	}
}

// A record that is changed while Purge runs stays, and a late change finds no
// record. With a single writer, Purge may find no time to run.
func (r *rig) racePurge(from, to store.State) {
	const keys = 64
	released := make([]store.Record, keys)
	for i := range released {
		released[i] = r.expiring(from, -time.Second)
	}
	claims := make([]store.Change, keys)
	inForce := make([]bool, keys)
	together(8, func(asker int) {
		if asker%2 == 0 {
			for range keys / 4 {
				if _, err := r.store.Purge(r.ctx, 4); err != nil && !r.caps.SingleWriter {
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
			r.mustStand(claims[i].To)
		} else {
			r.mustBeAbsent(released[i].ID)
		}
	}
}
