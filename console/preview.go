package console

import (
	"net/http"
	"slices"
	"time"

	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/store"
)

const (
	previewRows = 20
	// previewBudget is how long the records of an action are searched for.
	previewBudget = 200 * time.Millisecond
)

// preview is the body of the page that asks for the reason of an action.
type preview struct {
	Action    Action
	Filter    filter
	Filtered  bool // the records were selected by a filter, not one by one
	Rows      []store.Record
	Count     int
	More      bool // there may be more records than one action changes
	Tokens    []string
	Purgeable int64 // of Purge, as counted
	CountAge  time.Duration
	CountKnow bool
}

// showPreview shows which records an action would change, and changes nothing.
func showPreview(s *site, w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	e, err := s.engineOf(r)
	if err != nil {
		return err
	}
	v := &preview{Action: Action(r.FormValue("action"))}
	if !actorOf(r.Context()).Write {
		return &statusError{http.StatusForbidden, "You may not do this."}
	}
	switch {
	case v.Action == Purge:
		counts := e.counts.get(r.Context(), countWait)
		v.CountKnow, v.CountAge = counts.Known, counts.Age
		for _, n := range counts.Counts {
			v.Purgeable += n.Purgeable
		}
	case statesOf(v.Action) == nil:
		return badRequest("There is no such action.")
	default:
		if err := v.choose(r, e); err != nil {
			return err
		}
	}
	s.render(w, http.StatusOK, "preview", s.page(r, e, "preview", title(v.Action)+": preview", v))
	return nil
}

// choose finds the records by the form: IDs, or a filter.
func (v *preview) choose(r *http.Request, e *cachedEngine) error {
	var records []store.Record
	var err error
	if ids := r.Form["id"]; len(ids) > 0 {
		records, err = readAll(r, e, ids)
	} else {
		v.Filtered = true
		records, err = v.search(r, e)
	}
	if err != nil {
		return err
	}
	records = slices.DeleteFunc(records, func(c store.Record) bool { return !mayChange(v.Action, &c) })
	if len(records) > maxBulk {
		records, v.More = records[:maxBulk], true
	}
	v.Count, v.Rows = len(records), records[:min(previewRows, len(records))]
	for i := range records {
		v.Tokens = append(v.Tokens, tokenText(&records[i]))
	}
	return nil
}

// readAll reads the records of IDs.
func readAll(r *http.Request, e *cachedEngine, ids []string) (records []store.Record, err error) {
	if len(ids) > pageRows {
		return nil, badRequest("Too many records are selected.")
	}
	slices.Sort(ids)
	for _, text := range slices.Compact(ids) {
		id, err := store.ParseID(text)
		if err != nil {
			return nil, badRequest("An ID has 32 hexadecimal digits.")
		}
		record, err := admin.Read(r.Context(), e.Runner, id)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

// search finds the records of the filter in the states of the action.
func (v *preview) search(r *http.Request, e *cachedEngine) (records []store.Record, err error) {
	if v.Filter, err = parseFilter(r); err != nil {
		return nil, err
	}
	f := v.Filter
	f.Dead = f.Dead || v.Action == Redrive
	states := statesOf(v.Action)
	if f.State != store.Absent {
		states = slices.DeleteFunc(states, func(s store.State) bool { return s != f.State })
	}
	for _, f.State = range states {
		some, err := f.scan(r.Context(), e.Runner, store.ID{}, maxBulk, previewBudget/time.Duration(len(states)))
		if err != nil {
			return nil, err
		}
		records = append(records, some.Records...)
		v.More = v.More || some.More
	}
	return records, nil
}
