package console

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/store"
)

// maxBulk is the largest number of records of one action. More are changed in several.
const maxBulk = 1000

// selectedRecord is a record as the actor saw it in the preview: a record with another
// token has changed meanwhile, and is left alone.
type selectedRecord struct {
	ID    store.ID
	Token store.Token
}

// tokenText returns a record's ID and token for a form.
func tokenText(r *store.Record) string {
	return fmt.Sprintf("%s.%d.%d.%x", r.ID, r.State, r.Attempt, r.Owner)
}

// parseSelected parses the records of a form. A record is selected once.
func parseSelected(texts []string) (all []selectedRecord, err error) {
	if len(texts) == 0 || len(texts) > maxBulk {
		return nil, badRequest(fmt.Sprintf("Select 1 to %d records.", maxBulk))
	}
	wrong := badRequest("The form names no record: open the page again.")
	seen := make(map[store.ID]bool, len(texts))
	for _, text := range texts {
		parts := strings.Split(text, ".")
		if len(parts) != 4 {
			return nil, wrong
		}
		id, err := store.ParseID(parts[0])
		state, err2 := strconv.ParseUint(parts[1], 10, 8)
		attempt, err3 := strconv.ParseUint(parts[2], 10, 32)
		owner, err4 := strconv.ParseUint(parts[3], 16, 64)
		if err != nil || err2 != nil || err3 != nil || err4 != nil {
			return nil, wrong
		}
		if !seen[id] {
			seen[id] = true
			all = append(all, selectedRecord{id, store.Token{State: store.State(state), Attempt: uint32(attempt), Owner: owner}})
		}
	}
	return all, nil
}

// statesOf returns the states of the records that an action is for.
func statesOf(a Action) []store.State {
	switch a {
	case Resolve:
		return []store.State{store.InDoubt}
	case Redrive:
		return []store.State{store.InDoubt, store.Failed}
	case Cancel:
		return []store.State{store.Pending, store.InProgress}
	case Reveal, Probe, Purge:
	}
	return nil
}

// mayChange reports whether an action is offered for r. The engine decides.
func mayChange(a Action, r *store.Record) bool {
	if !slices.Contains(statesOf(a), r.State) {
		return false
	}
	return a != Redrive || r.State == store.Failed || admin.IsDeadLetter(*r)
}

// actionsOn returns the actions that are offered for r.
func actionsOn(r *store.Record) (all []Action) {
	for _, a := range []Action{Resolve, Redrive, Cancel} {
		if mayChange(a, r) {
			all = append(all, a)
		}
	}
	return all
}
