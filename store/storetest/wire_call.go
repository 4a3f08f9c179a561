package storetest

import "fmt"

// wireCallChecks run an operation in each mode and lose the reply to each of its
// writes in turn. Each answer must be true, and retries must settle the key.
func wireCallChecks(all []mode) []engineCheck {
	var checks []engineCheck
	for _, w := range all {
		checks = append(checks, engineCheck{w.name, func(r *engineHarness) { r.loseEachReply(w) }})
	}
	return checks
}

func (r *engineHarness) loseEachReply(w mode) {
	total := 0
	for k := 1; k <= maxCalls; k++ {
		lost, made := r.loseReplyFrom(w, k)
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

// loseReplyFrom arms the connection before the k-th store call. It reports whether
// a reply was lost, and whether there was a k-th call.
func (r *engineHarness) loseReplyFrom(w mode, k int) (lost, made bool) {
	r.Helper()
	end := func() bool { return false }
	counted := r.connect(func(c Call) Fault {
		if c.N == k {
			end = r.lose()
		}
		return Fault{}
	})
	work := r.newModeRun(w, fmt.Sprintf("wire-%d", k))
	h := history{answers: []answer{r.callOnce(work, counted)}}
	for len(h.answers) < 6 && !h.answers[len(h.answers)-1].final() {
		h.answers = append(h.answers, r.callOnce(work, counted))
	}
	lost, made = end(), counted.Calls() >= k
	r.checkHistory(work, h, fmt.Sprintf("reply to call %d lost", k))
	return lost, made
}
