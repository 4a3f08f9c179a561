package storetest

import (
	"time"

	"github.com/semelgo/semel/store"
)

// joinChecks test changes that join a running Swap.
func joinChecks() []storeCheck {
	return []storeCheck{
		{"Results", joinedResults},
		{"InvalidChange", joinedInvalidChange},
		{"UntilEmpty", joinedUntilEmpty},
		{"Times", joinedTimes},
	}
}

// lacksJoin returns why changes cannot join a Swap of the store.
func (r *harness) lacksJoin() string {
	if g, ok := r.store.(store.BatchJoiner); !ok || g.Self() != r.store {
		return "the store is no store.BatchJoiner"
	}
	return ""
}

// swapJoined swaps the first group, and the other groups join it. It repeats the
// call while all changes of the first group are Busy, because a busy batch accepts
// no changes.
func (r *harness) swapJoined(groups ...[]store.Change) []store.SwapResult {
	r.Helper()
	for {
		joined := 1
		answers, err := r.store.(store.BatchJoiner).SwapJoinable(r.ctx, groups[0], func() []store.Change {
			if joined == len(groups) {
				return nil
			}
			joined++
			return groups[joined-1]
		})
		switch {
		case err != nil:
			r.Fatalf("SwapJoinable: %v", err)
		case joined == 1 && answers[0].Busy:
			continue
		}
		return answers
	}
}

// Each change has its own result, in order, independent of the changes that it
// joined.
func joinedResults(r *harness) {
	taken, running := r.mustCreateIn(store.Succeeded), r.mustCreateIn(store.InProgress)
	absent := r.fresh()
	absent.Token = token(store.InProgress, 1)
	changes := []store.Change{
		create(r.fresh(), store.InProgress),
		move(running, token(store.Succeeded, 1)),
		stale(taken, store.Failed),
		create(r.fresh(), store.Pending),
		move(absent, token(store.Succeeded, 1)),
	}
	for range 30 {
		changes = append(changes, create(r.fresh(), store.InProgress))
	}
	answers := r.swapJoined(changes[:2], changes[2:3], changes[3:20], changes[20:])
	if len(answers) != len(changes) {
		r.Fatalf("%d answers to %d changes", len(answers), len(changes))
	}
	for i, c := range changes {
		switch i {
		case 2:
			r.checkRejected(c, answers[i], taken.Token)
		case 4:
			r.checkRejected(c, answers[i], store.Token{})
		default:
			if !answers[i].Applied(c) || r.get(c.To.ID)[0].Token != c.To.Token {
				r.Errorf("%s = %s, want applied", show(c), showAnswer(answers[i]))
			}
		}
	}
}

// Of a joining group, only the invalid change is rejected.
func joinedInvalidChange(r *harness) {
	good, bad, last := create(r.fresh(), store.InProgress), create(r.fresh(), store.InProgress), create(r.fresh(), store.InProgress)
	bad.To.Outcome = append(r.largest(), 0)
	answers := r.swapJoined([]store.Change{good}, []store.Change{bad}, []store.Change{last})
	if len(answers) != 3 || answers[1].Err == nil {
		r.Fatalf("%d answers, to one that cannot be kept %s, want an Err", len(answers), showAnswer(answers[1]))
	}
	r.mustBeAbsent(bad.To.ID)
	for i, c := range map[int]store.Change{0: good, 2: last} {
		if !answers[i].Applied(c) {
			r.Errorf("%s beside one that cannot be kept = %s, want applied", show(c), showAnswer(answers[i]))
		}
	}
}

// The store requests groups until it gets an empty one, and then no more.
func joinedUntilEmpty(r *harness) {
	var groups [][]store.Change
	for range 5 {
		groups = append(groups, []store.Change{create(r.fresh(), store.InProgress)})
	}
	for asked := 1; ; asked = 1 {
		answers, err := r.store.(store.BatchJoiner).SwapJoinable(r.ctx, groups[0], func() []store.Change {
			asked++
			if asked > len(groups) {
				return nil
			}
			return groups[asked-1]
		})
		switch {
		case err != nil:
			r.Fatalf("SwapJoinable: %v", err)
		case asked == 1 && answers[0].Busy:
			continue
		case asked != len(groups)+1 || len(answers) != len(groups):
			r.Errorf("asked %d times for others, and answered %d changes; want %d and %d", asked-1, len(answers), len(groups), len(groups))
		}
		return
	}
}

// The times of a joined change count from its arrival.
func joinedTimes(r *harness) {
	if r.advance == nil {
		r.Skip("the store's clock cannot be moved")
	}
	first, joins := create(r.fresh(), store.InProgress), create(r.fresh(), store.InProgress)
	joins.To.Due = 10 * time.Minute
	came := false
	_, err := r.store.(store.BatchJoiner).SwapJoinable(r.ctx, []store.Change{first}, func() []store.Change {
		if came {
			return nil
		}
		came = true
		r.advance(time.Hour)
		return []store.Change{joins}
	})
	if err != nil || !came {
		r.Fatalf("SwapJoinable = %v; joined: %v", err, came)
	}
	if due := r.get(joins.To.ID)[0].Record.Due; due <= 10*time.Minute-clockSlack || due > 10*time.Minute {
		r.Errorf("the lease of a joined claim is %v, and ends in %v", joins.To.Due, due)
	}
}
