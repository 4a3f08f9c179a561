package console

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"

	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/journal"
	"github.com/semelgo/semel/store"
)

// recordDetail is the body of the page of a record.
type recordDetail struct {
	store.Record

	Revealed    bool
	Input       string
	Outcome     recordview.Outcome
	Result      string
	Progress    *recordview.Progress
	Tries       []recordview.Try
	Notes       []store.Note
	Unrecorded  []journal.Entry // of the record, in the journal
	Actions     []Action        // that its state allows
	Token       string
	Fingerprint string
	InputBytes  int
	Probe       probeState
	Evidence    *evidence // nil: the probe was not called
	Child       string    // the name of a downstream call
	ChildKey    string    // its key; empty: no name was given
}

// recordPage shows a record.
func recordPage(s *site, r *http.Request) (*page, error) {
	e, id, err := s.recordOf(r)
	if err != nil {
		return nil, err
	}
	v, err := detailOf(r, e, id, false)
	if err != nil {
		return nil, err
	}
	return s.page(r, e, "record", "Record", v), nil
}

// recordOf returns the record that the request names, and its engine.
func (s *site) recordOf(r *http.Request) (*cachedEngine, store.ID, error) {
	if err := r.ParseForm(); err != nil {
		return nil, store.ID{}, badForm(err)
	}
	e, err := s.engineOf(r)
	if err != nil {
		return nil, store.ID{}, err
	}
	id, err := store.ParseID(r.FormValue("id"))
	if err != nil {
		return nil, store.ID{}, badRequest("An ID has 32 hexadecimal digits.")
	}
	return e, id, nil
}

// reveal shows a record with the data of callers.
func reveal(s *site, w http.ResponseWriter, r *http.Request) error {
	return s.showAudited(w, r, Reveal, func(context.Context, *cachedEngine, *recordDetail) {})
}

// probe calls the probe of a record's operation, and shows the evidence.
func probe(s *site, w http.ResponseWriter, r *http.Request) error {
	return s.showAudited(w, r, Probe, func(ctx context.Context, e *cachedEngine, v *recordDetail) {
		v.Evidence = callProbe(ctx, e.Runner, v.ID, actorOf(ctx).Reveal)
	})
}

// showAudited shows a record after an action that changes nothing.
func (s *site) showAudited(w http.ResponseWriter, r *http.Request, a Action, act func(context.Context, *cachedEngine, *recordDetail)) error {
	e, id, err := s.recordOf(r)
	if err != nil {
		return err
	}
	if err := s.audit(r, e, Event{Action: a, Records: []store.ID{id}}); err != nil {
		return err
	}
	v, err := detailOf(r, e, id, a == Reveal)
	if err != nil {
		return err
	}
	act(r.Context(), e, v)
	s.render(w, http.StatusOK, "record", s.page(r, e, "record", "Record", v))
	return nil
}

// audit reports an action before it happens. It refuses an actor without the right to it.
func (s *site) audit(r *http.Request, e *cachedEngine, event Event) error {
	actor := actorOf(r.Context())
	event.Actor, event.Engine = actor.Name, e.Name
	allowed := actor.Write
	switch event.Action {
	case Reveal:
		allowed = actor.Reveal
	case Probe:
		allowed = actor.mayProbe()
	case Resolve, Redrive, Cancel, Purge:
	}
	if !allowed {
		return &statusError{http.StatusForbidden, "You may not do this."}
	}
	if err := s.options.Audit(r.Context(), event); err != nil {
		return &statusError{http.StatusServiceUnavailable, "The audit log does not answer, so nothing was done."}
	}
	return nil
}

// detailOf reads all about a record.
func detailOf(r *http.Request, e *cachedEngine, id store.ID, reveal bool) (*recordDetail, error) {
	record, err := admin.Read(r.Context(), e.Runner, id)
	if err != nil {
		return nil, err
	}
	notes, err := admin.Notes(r.Context(), e.Runner, id)
	if err != nil {
		return nil, err
	}
	if record.State == store.Absent && len(notes) == 0 {
		return nil, &statusError{http.StatusNotFound, "There is no such record. It may have been purged."}
	}
	record.ID = id
	v := &recordDetail{
		Record: record, Revealed: reveal, Outcome: recordview.OutcomeOf(&record, reveal),
		Progress: recordview.ProgressOf(&record), Tries: recordview.TriesOf(&record, reveal), Notes: notes,
		Actions: actionsOn(&record), Token: tokenText(&record), Fingerprint: hex.EncodeToString(record.Fingerprint),
		InputBytes: len(record.Input), Probe: probeOf(e.Runner, &record),
	}
	if v.Child = r.FormValue("child"); v.Child != "" {
		v.ChildKey = admin.ChildKey(record, v.Child)
	}
	if reveal {
		v.Input = bodyText(record.Input)
		v.Result = revealed(&v.Outcome)
	}
	if e.Journal != nil {
		entries, err := e.Journal.Entries()
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if entry.Record.ID == id {
				v.Unrecorded = append(v.Unrecorded, entry)
			}
		}
	}
	return v, nil
}

// revealed returns the result, or the details of a failure, for people.
func revealed(o *recordview.Outcome) string {
	switch {
	case o.JSON != nil:
		return bodyText(o.JSON)
	case o.Base64 != nil:
		return bodyText(o.Base64)
	case o.Details != nil:
		return bodyText(o.Details)
	default:
		return ""
	}
}

// badForm returns the error of a form that cannot be read.
func badForm(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return &statusError{http.StatusRequestEntityTooLarge, "The form is too large."}
	}
	return badRequest("The form cannot be read.")
}
