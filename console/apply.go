package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/store"
)

const (
	// batchSize is the number of records between two reports of progress, and
	// batchWorkers how many of them are changed at the same time.
	batchSize    = 50
	batchWorkers = 4
	// batchTimeout limits a batch, and the time for sending its report.
	batchTimeout = time.Minute
	// purgeBatches and purgeSize bound a purge.
	purgeBatches, purgeSize = 20, 1000

	maxReason = 1000
	maxResult = 256 << 10
)

// decision is what an actor decided about records.
type decision struct {
	Action   Action
	Reason   string
	Selected []selectedRecord

	resolution admin.Resolution
	anyForm    bool // the result may have another form than others of the operation
}

// parseDecision reads the form of an action.
func parseDecision(r *http.Request) (d decision, err error) {
	d = decision{Action: Action(r.PostFormValue("action")), Reason: strings.TrimSpace(r.PostFormValue("reason"))}
	switch {
	case d.Reason == "":
		return d, badRequest("Give a reason: it is kept with the records.")
	case len(d.Reason) > maxReason:
		return d, badRequest("The reason is too long.")
	case d.Action == Purge:
		return d, nil
	case statesOf(d.Action) == nil:
		return d, badRequest("There is no such action.")
	}
	if d.Selected, err = parseSelected(r.PostForm["record"]); err != nil || d.Action != Resolve {
		return d, err
	}
	d.anyForm = r.PostFormValue("any_form") != ""
	d.resolution, err = parseResolution(r, len(d.Selected))
	return d, err
}

// parseResolution reads how records in doubt are resolved.
func parseResolution(r *http.Request, records int) (w admin.Resolution, err error) {
	code, message := r.PostFormValue("code"), r.PostFormValue("message")
	result := strings.TrimSpace(r.PostFormValue("result"))
	switch r.PostFormValue("to") {
	case "succeeded":
		w.To = store.Succeeded
	case "failed":
		w.To = store.Failed
		if code != "" || message != "" {
			w.Failure = &semel.Failure{Code: code, Message: message}
		}
	case "pending":
		w.To = store.Pending
	default:
		return w, badRequest("Choose what happened.")
	}
	switch {
	case len(code)+len(message) > maxReason:
		return w, badRequest("The code and the message are too long.")
	case result == "" || w.To != store.Succeeded:
		return w, nil
	case records > 1:
		return w, badRequest("A result belongs to one record.")
	case len(result) > maxResult:
		return w, badRequest("The result is too large.")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(result)); err != nil {
		return w, badRequest("The result is not JSON.")
	}
	w.Result = json.RawMessage(compact.Bytes())
	return w, nil
}

// changed is what became of one record.
type changed struct {
	ID    store.ID
	Kind  string // done, changed, refused or unknown
	Text  string
	State store.State
}

// The kinds of results of an action.
const (
	kindDone    = "done"
	kindChanged = "changed"
	kindRefused = "refused"
	kindUnknown = "unknown"
)

// report is the data of the page of an action's results.
type report struct {
	Decision decision
	Done     int
	Changed  int
	Refused  int
	Unknown  int
	Left     int // records that were not reached
	Removed  int // by a purge
	Finished bool
	Rows     []changed // of one batch
}

// add counts the results of a batch, which become the report's rows.
func (v *report) add(rows []changed) {
	v.Rows = rows
	for _, c := range rows {
		switch c.Kind {
		case kindDone:
			v.Done++
		case kindChanged:
			v.Changed++
		case kindRefused:
			v.Refused++
		default:
			v.Unknown++
		}
	}
}

// apply changes the records of a form, and reports the progress on its page while it
// works. If the browser goes away, it stops after the current batch.
func apply(s *site, w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	e, err := s.engineOf(r)
	if err != nil {
		return err
	}
	if !actorOf(r.Context()).Write {
		return &statusError{http.StatusForbidden, "You may not do this."}
	}
	d, err := parseDecision(r)
	if err != nil {
		return err
	}
	event := Event{Action: d.Action, Reason: d.Reason}
	for _, one := range d.Selected {
		event.Records = append(event.Records, one.ID)
	}
	if err := s.audit(r, e, event); err != nil {
		return err
	}
	defer e.counts.expire()
	v := &report{Decision: d, Left: len(d.Selected)}
	p := s.page(r, e, "apply", "Result", v)
	part := func(name string) error {
		out := http.NewResponseController(w)
		_ = out.SetWriteDeadline(clock.Now().Add(batchTimeout)) // a server without deadlines needs none
		var text bytes.Buffer
		if err := s.pages["apply"].ExecuteTemplate(&text, name, p); err != nil {
			return err
		}
		if _, err := w.Write(text.Bytes()); err != nil {
			return err
		}
		return out.Flush()
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no") // proxies must not hold the progress back
	err = part("begin")
	if d.Action == Purge && err == nil {
		purge(r.Context(), e, v)
	}
	for rest := d.Selected; len(rest) > 0 && err == nil && r.Context().Err() == nil; {
		n := min(batchSize, len(rest))
		v.add(changeBatch(r.Context(), e, &d, actorOf(r.Context()).Name, rest[:n]))
		rest = rest[n:]
		v.Left = len(rest)
		err = part("rows")
	}
	v.Finished = true
	if err == nil {
		_ = part("finish") // the browser is gone
	}
	return nil
}

// purge removes records past their retention, in batches.
func purge(ctx context.Context, e *cachedEngine, v *report) {
	for range purgeBatches {
		n, err := admin.Purge(ctx, e.Runner, purgeSize)
		v.Removed += n
		if err != nil {
			v.Unknown++
		}
		if err != nil || n < purgeSize {
			return
		}
		v.Left = 1 // there may be more
	}
}

// changeBatch changes a batch of records, and returns the results in their order. A batch
// that has begun is completed, also if the browser goes away.
func changeBatch(ctx context.Context, e *cachedEngine, d *decision, actor string, batch []selectedRecord) []changed {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	rows := make([]changed, len(batch))
	var wait sync.WaitGroup
	for worker := range batchWorkers {
		wait.Go(func() {
			for i := worker; i < len(batch); i += batchWorkers {
				rows[i] = changeOne(ctx, e, d, actor, batch[i])
			}
		})
	}
	wait.Wait()
	return rows
}

// changeOne changes one record, if it is still the one that the actor saw.
func changeOne(ctx context.Context, e *cachedEngine, d *decision, actor string, seen selectedRecord) changed {
	c := changed{ID: seen.ID, Kind: kindUnknown, Text: "the store does not answer: look at the record"}
	current, err := admin.Read(ctx, e.Runner, seen.ID)
	if err != nil {
		return c
	}
	if c.State = current.State; current.Token != seen.Token {
		c.Kind, c.Text = kindChanged, "it has changed meanwhile, and was left alone"
		return c
	}
	var now store.Record
	switch d.Action {
	case Resolve:
		now, err = resolve(ctx, e.Runner, d, actor, &current)
	case Redrive:
		now, err = admin.Redrive(ctx, e.Runner, admin.RedriveRequest{ID: seen.ID, Actor: actor, Reason: d.Reason})
	case Cancel:
		now, err = admin.CancelAs(ctx, e.Runner, seen.ID, actor, d.Reason)
	case Reveal, Probe, Purge:
	}
	if err != nil {
		c.Kind, c.Text = resultOf(err)
		return c
	}
	c.Kind, c.State, c.Text = kindDone, now.State, "is "+now.State.String()+" now"
	switch {
	case d.Action != Cancel:
	case now.State == store.InProgress:
		c.Text = "its worker is asked to stop"
	case now.State == store.Succeeded:
		c.Kind, c.Text = kindChanged, "it has succeeded meanwhile"
	}
	return c
}

// resolve resolves the record that the actor saw.
func resolve(ctx context.Context, e semel.Runner, d *decision, actor string, seen *store.Record) (store.Record, error) {
	w := d.resolution
	w.ID, w.Attempt, w.Actor, w.Reason = seen.ID, seen.Attempt, actor, d.Reason
	if result, ok := w.Result.(json.RawMessage); ok && !d.anyForm {
		list := func(ctx context.Context, q store.Query) ([]store.Record, error) { return admin.List(ctx, e, q) }
		if err := recordview.CheckForm(ctx, list, seen.Operation, result); err != nil {
			return *seen, fmt.Errorf("%w: tick \"Any form\" to store it nevertheless", err)
		}
	}
	return admin.Resolve(ctx, e, w)
}

// resultOf returns what an error of a change means.
func resultOf(err error) (kind, text string) {
	switch {
	case errors.Is(err, admin.ErrNotInDoubt):
		return kindChanged, "it is not in doubt any more"
	case errors.Is(err, admin.ErrNotOwned):
		return kindRefused, "its caller chose the key: a new try needs a new key"
	case errors.Is(err, admin.ErrNotFailed):
		return kindRefused, "it is no dead letter that may run again"
	case errors.Is(err, semel.ErrInProgress):
		return kindRefused, "a transaction holds it: try again"
	case errors.Is(err, semel.ErrInvalid):
		return kindRefused, fmt.Sprint(err)
	default:
		return kindUnknown, "the store does not answer: look at the record"
	}
}
