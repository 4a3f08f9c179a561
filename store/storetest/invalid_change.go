package storetest

import (
	"slices"
	"strings"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// An invalid change is rejected alone, at any place in the batch and for every
// reason, and the error names the reason.
func batchWithInvalidChange(r *harness) {
	tooLarge := append(r.largest(), 0)
	for _, poison := range []struct {
		field string
		spoil func(c *store.Change)
	}{
		{"outcome", func(c *store.Change) { c.To.Outcome = tooLarge }},
		{"input", func(c *store.Change) { c.To.Input = tooLarge }},
		{"state", func(c *store.Change) { c.To.State = store.Absent }},
		{"state", func(c *store.Change) { c.To.State = store.Failed + 1 }},
	} {
		for place := range 5 {
			r.mustRejectOnly(place, poison.field, poison.spoil)
		}
	}
}

// mustRejectOnly makes one change of a batch invalid, a create at an even place and
// a move at an odd one, and requires that the others are applied.
func (r *harness) mustRejectOnly(place int, field string, spoil func(c *store.Change)) {
	r.Helper()
	changes := make([]store.Change, 5)
	for i := range changes {
		changes[i] = create(r.fresh(), store.InProgress)
		if i%2 == 1 {
			r.mustApply(changes[i])
			changes[i] = move(changes[i].To, token(store.Succeeded, 1))
		}
	}
	good := changes[place].To.Token
	spoil(&changes[place])
	answers := r.swap(changes...)
	for i, answer := range answers {
		if i != place && !answer.Applied(changes[i]) {
			r.Fatalf("%s beside a bad %s = %s, want applied", show(changes[i]), field, showAnswer(answer))
		}
	}
	r.mustRejectKey(field, changes[place])
	check.Fails(r, answers[place].Err, "a bad %s in a batch = %s, want an Err", field, showAnswer(answers[place]))
	current := r.get(changes[place].To.ID)[0].Token
	if current != changes[place].If || current == good {
		r.Errorf("after a rejected change %s is current, want no change", showToken(current))
	}
}

// A batch with a duplicate ID fails with the ID in the error, and nothing is
// written, because the result would depend on the order.
func duplicateIDs(r *harness) {
	running := r.mustCreateIn(store.InProgress)
	twice, other := create(r.fresh(), store.InProgress), create(r.fresh(), store.InProgress)
	rival := create(twice.To, store.InProgress)
	beat := move(running, running.Token)
	beat.To.Due = 2 * farAhead
	for _, changes := range [][]store.Change{
		{twice, other, rival},
		{twice, twice},
		{other, beat, move(running, token(store.Succeeded, 1))},
	} {
		r.mustFailBatch(changes, changes[1:])
	}
	r.mustBeAbsent(twice.To.ID)
	r.mustBeAbsent(other.To.ID)
	r.mustHoldRecord(running)
	if got := r.mustRead(running.ID).Due; got > farAhead {
		r.Errorf("a batch that failed moved Due to %v", got)
	}
	r.mustApply(twice)
}

// mustFailBatch sends a batch that every store must reject. The error contains the
// ID of an invalid change.
func (r *harness) mustFailBatch(changes, inDoubt []store.Change) {
	r.Helper()
	answers, err := r.store.Swap(r.ctx, changes)
	if err == nil {
		r.Errorf("Swap of %d changes, that names an ID twice = %d answers, want an error", len(changes), len(answers))
		return
	}
	named := func(c store.Change) bool { return strings.Contains(err.Error(), c.To.ID.String()) }
	if !slices.ContainsFunc(inDoubt, named) {
		r.Errorf("Swap that names an ID twice: %q, want the ID", err)
	}
}

// A batch above the largest size that the store reports is rejected as a whole.
func tooManyChanges(r *harness) {
	if r.caps.MaxBatch > 5000 {
		r.Skipf("Capabilities.MaxBatch = %d", r.caps.MaxBatch)
	}
	changes := make([]store.Change, r.caps.MaxBatch+1)
	for i := range changes {
		changes[i] = create(r.fresh(), store.InProgress)
	}
	if answers, err := r.store.Swap(r.ctx, changes); err == nil {
		r.Errorf("Swap of %d changes = %d answers, want an error", len(changes), len(answers))
	}
	r.mustFind(store.Query{})
}

// A batch with more bytes than the store reports is rejected as a whole, by name. A batch
// with as many bytes is applied.
func tooManyBytes(r *harness) {
	if r.caps.MaxBytes == 0 {
		r.Skip("Capabilities.MaxBytes is zero")
	}
	if r.caps.MaxBytes < 2*r.caps.MaxOutcome {
		r.Fatalf("Capabilities.MaxBytes = %d, want at least twice MaxOutcome, %d", r.caps.MaxBytes, r.caps.MaxOutcome)
	}
	var changes []store.Change
	for left := r.caps.MaxBytes; left > 0; {
		c := create(r.fresh(), store.InProgress)
		c.To.Outcome = r.largest()[:min(left, r.caps.MaxOutcome)]
		left -= len(c.To.Outcome)
		changes = append(changes, c)
	}
	one := create(r.fresh(), store.InProgress)
	one.To.Input = []byte{1}
	answers, err := r.store.Swap(r.ctx, append(slices.Clone(changes), one))
	check.ErrorIs(r, err, store.ErrTooManyBytes, "Swap of MaxBytes and one = %d answers", len(answers))
	r.mustFind(store.Query{})
	for i, answer := range r.swap(changes...) {
		if !answer.Applied(changes[i]) {
			r.Errorf("%s in a batch of MaxBytes = %s, want applied", show(changes[i]), showAnswer(answer))
		}
	}
}
