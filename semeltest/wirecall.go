package semeltest

import "fmt"

// wireCallChecks run an operation in each way, and lose on the wire the reply to
// each of its writes in turn. What is told must be true, and asking again must
// settle the key.
func wireCallChecks[Tx any]() []check[Tx] {
	var checks []check[Tx]
	for _, w := range ways[Tx]() {
		checks = append(checks, check[Tx]{w.name, func(r *txRig[Tx]) { r.loseEach(w) }})
	}
	return inTx(checks...)
}

func (r *txRig[Tx]) loseEach(w way[Tx]) {
	total := 0
	for k := 1; k <= maxCalls; k++ {
		lost, made := r.loseKth(w, k)
		if lost {
			total++
		}
		if !made {
			break
		}
	}
	if total == 0 {
		r.Error("no reply was lost: Subject.Lose does not do what it says")
	}
}

// loseKth arms the connection before the k-th call that is made of the store
// until the key is settled. It reports whether a reply was lost, and whether there was a k-th call.
func (r *txRig[Tx]) loseKth(w way[Tx], k int) (lost, made bool) {
	r.Helper()
	end := func() bool { return false }
	counted := NewFaulty(r.tx, func(c Call) Fault {
		if c.N == k {
			end = r.subject.Lose()
		}
		return None
	})
	work := r.newWork(w, fmt.Sprintf("wire-%d", k))
	h := history{answers: []answer{r.askOnce(work, r.failing(counted))}}
	for len(h.answers) < 6 && !h.answers[len(h.answers)-1].final() {
		h.answers = append(h.answers, r.askOnce(work, r.failing(counted)))
	}
	lost, made = end(), counted.Calls() >= k
	r.judge(work, h, fmt.Sprintf("reply to call %d lost", k))
	return lost, made
}
