package console

import (
	"net/http"
	"slices"

	"github.com/semelgo/semel/store"
)

// doubtPage lists the records in doubt, with the evidence that is stored.
func doubtPage(s *site, r *http.Request) (*page, error) {
	e, err := s.engineOf(r)
	if err != nil {
		return nil, err
	}
	v, err := listRecords(e, r, filter{State: store.InDoubt, Operation: r.FormValue("operation")}, "doubt")
	if err != nil {
		return nil, err
	}
	return s.page(r, e, "doubt", "In doubt", v), nil
}

// maxLetters is the largest number of dead letters of a state that are grouped.
const maxLetters = 2000

// deadLetters is the body of the page of dead letters.
type deadLetters struct {
	Groups   []*letterGroup
	Letters  int
	Stopped  bool // there may be more
	Revealed bool
}

// letterKind is what the dead letters of a group have in common.
type letterKind struct {
	Operation string
	State     store.State
	Code      string
	Error     string // the last error; shown when it is revealed
}

// letterGroup is dead letters of one operation with the same error.
type letterGroup struct {
	letterKind

	Records   int
	Newest    store.Record
	ListURL   string
	ReviewURL string
}

// showDead groups the dead letters by their errors. With POST it reveals the errors.
func showDead(s *site, w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	e, err := s.engineOf(r)
	if err != nil {
		return err
	}
	v, ids, err := groupLetters(r, e)
	if err != nil {
		return err
	}
	if r.Method == http.MethodPost {
		if err := s.audit(r, e, Event{Action: Reveal, Records: ids}); err != nil {
			return err
		}
		v.Revealed = true
	}
	s.render(w, http.StatusOK, "dead", s.page(r, e, "dead", "Dead letters", v))
	return nil
}

// groupLetters reads dead letters and groups them. It returns the IDs of the records whose
// errors the page can show.
func groupLetters(r *http.Request, e *cachedEngine) (v *deadLetters, ids []store.ID, err error) {
	v = new(deadLetters)
	groups := make(map[letterKind]*letterGroup)
	var letters []store.Record
	for _, state := range []store.State{store.InDoubt, store.Failed} {
		f := filter{State: state, Dead: true}
		some, err := f.scan(r.Context(), e.Runner, store.ID{}, maxLetters, scanBudget/2)
		if err != nil {
			return nil, nil, err
		}
		letters = append(letters, some.Records...)
		v.Stopped = v.Stopped || some.More
	}
	v.Letters = len(letters)
	for _, letter := range letters {
		key := letterKind{Operation: letter.Operation, State: letter.State, Code: codeOf(&letter), Error: lastError(&letter)}
		g := groups[key]
		if g == nil {
			g = &letterGroup{letterKind: key}
			groups[key], v.Groups = g, append(v.Groups, g)
			f := filter{Operation: key.Operation, State: key.State, Code: key.Code, Error: errorClass(key.Error), Dead: true}
			values := f.values(e.Name)
			g.ListURL = "records?" + values.Encode()
			values.Set("action", string(Redrive))
			g.ReviewURL = "preview?" + values.Encode()
		}
		if g.Records == 0 || letter.Since < g.Newest.Since {
			g.Newest = letter
		}
		g.Records++
	}
	for _, g := range v.Groups {
		ids = append(ids, g.Newest.ID)
	}
	slices.SortStableFunc(v.Groups, func(a, b *letterGroup) int { return b.Records - a.Records })
	return v, ids, nil
}
