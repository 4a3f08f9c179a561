package semeltest

import (
	"slices"
	"strings"

	"github.com/semelgo/semel/store"
)

// An invalid change is refused alone, at any place in the batch and for every
// reason, and the error names the reason.
func poisonedBatch(r *rig) {
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
			r.mustSurvive(place, poison.field, poison.spoil)
		}
	}
}

// mustSurvive spoils one change of a batch, a create in an even place and a move
// in an odd one, and requires that the others are made.
func (r *rig) mustSurvive(place int, field string, spoil func(c *store.Change)) {
	r.Helper()
	changes := make([]store.Change, 5)
	for i := range changes {
		changes[i] = create(r.fresh(), store.InProgress)
		if i%2 == 1 {
			r.mustForce(changes[i])
			changes[i] = move(changes[i].To, token(store.Succeeded, 1))
		}
	}
	good := changes[place].To.Token
	spoil(&changes[place])
	answers := r.swap(changes...)
	for i, answer := range answers {
		if i != place && !answer.Applied(changes[i]) {
			r.Fatalf("%s beside a bad %s = %s, want in force", show(changes[i]), field, showAnswer(answer))
		}
	}
	r.mustRefuseFor(field, changes[place])
	if answers[place].Err == nil {
		r.Errorf("a bad %s in a batch = %s, want an Err", field, showAnswer(answers[place]))
	}
	stands := r.get(changes[place].To.ID)[0].Token
	if stands != changes[place].If || stands == good {
		r.Errorf("after a refused change %s stands, want what stood", showToken(stands))
	}
}

// A batch with a duplicate ID fails with the ID in the error, and nothing is
// written, because the result would depend on the order.
func duplicateIDs(r *rig) {
	running := r.stand(store.InProgress)
	twice, other := create(r.fresh(), store.InProgress), create(r.fresh(), store.InProgress)
	rival := create(twice.To, store.InProgress)
	beat := move(running, running.Token)
	beat.To.Due = 2 * long
	for _, changes := range [][]store.Change{
		{twice, other, rival},
		{twice, twice},
		{other, beat, move(running, token(store.Succeeded, 1))},
	} {
		r.mustFailWhole(changes, changes[1:])
	}
	r.mustBeAbsent(twice.To.ID)
	r.mustBeAbsent(other.To.ID)
	r.mustStand(running)
	if got := r.mustRead(running.ID).Due; got > long {
		r.Errorf("a batch that failed moved Due to %v", got)
	}
	r.mustForce(twice)
}

// mustFailWhole asks for a batch that no store takes. The error tells the ID of
// one of those in doubt.
func (r *rig) mustFailWhole(changes, inDoubt []store.Change) {
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

// A batch above the size that the store names is refused whole.
func tooManyChanges(r *rig) {
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
