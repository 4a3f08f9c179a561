package console

import (
	"net/http"
	"slices"
	"strings"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// recordList is the body of the lists of records.
type recordList struct {
	searchResult

	Filter     filter
	Operations []string
	Exact      bool   // the records were found by their IDs
	NextURL    string // the next page
	FirstURL   string // the first page; empty on it
	BulkURL    map[Action]string

	runner semel.Runner
}

// Probe returns what is known about the probe of a record, for templates.
func (l *recordList) Probe(r store.Record) probeState { return probeOf(l.runner, &r) }

// showRecords lists the records that match the filter. An ID leads to its record.
func showRecords(s *site, w http.ResponseWriter, r *http.Request) error {
	e, err := s.engineOf(r)
	if err != nil {
		return err
	}
	if id, err := store.ParseID(strings.TrimSpace(r.FormValue("id"))); err == nil {
		redirect(w, (&page{Engine: e.Name}).Record(id))
		return nil
	} else if r.FormValue("id") != "" {
		return badRequest("An ID has 32 hexadecimal digits.")
	}
	f, err := parseFilter(r)
	if err != nil {
		return err
	}
	v, err := listRecords(e, r, f, "records")
	if err != nil {
		return err
	}
	s.render(w, http.StatusOK, "records", s.page(r, e, "records", "Records", v))
	return nil
}

// listRecords returns one page of a list at a path.
func listRecords(e *cachedEngine, r *http.Request, f filter, path string) (*recordList, error) {
	counts := e.counts.get(r.Context(), 0)
	v := &recordList{Filter: f, Operations: counts.operations(), BulkURL: make(map[Action]string), runner: e.Runner}
	var after store.ID
	if text := r.FormValue("after"); text != "" {
		var err error
		if after, err = store.ParseID(text); err != nil {
			return nil, badRequest("The page is not given by an ID.")
		}
	}
	values := f.values(e.Name)
	for _, a := range []Action{Resolve, Redrive, Cancel} {
		if f == (filter{}) || f.State != store.Absent && !slices.Contains(statesOf(a), f.State) {
			continue // all records, or none that the action is for
		}
		with := f.values(e.Name)
		with.Set("action", string(a))
		v.BulkURL[a] = "preview?" + with.Encode()
	}
	if after != (store.ID{}) {
		v.FirstURL = path + "?" + values.Encode()
	}
	if f.Key != "" && f.Scope != "" && after == (store.ID{}) {
		records, err := f.exact(r.Context(), e.Runner, v.Operations)
		if err != nil {
			return nil, err
		}
		if v.Records, v.Exact = records, len(records) > 0; v.Exact {
			return v, nil
		}
	}
	var err error
	if v.searchResult, err = f.scan(r.Context(), e.Runner, after, pageRows, scanBudget); err != nil {
		return nil, err
	}
	if v.More {
		values.Set("after", v.Next.String())
		v.NextURL = path + "?" + values.Encode()
	}
	return v, nil
}

// redirect sends the browser to another page of the console. The URL is relative, because
// the handler does not know where it is mounted.
func redirect(w http.ResponseWriter, relative string) {
	w.Header().Set("Location", relative)
	w.WriteHeader(http.StatusSeeOther)
}
