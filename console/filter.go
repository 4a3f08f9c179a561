package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/store"
)

const (
	pageRows = 50
	// scanBudget is how long a page searches for records that match. After that it
	// shows what it has found, and a link to go on.
	scanBudget = 120 * time.Millisecond
	// The pages of a search grow while their records are small, because a page has the
	// bodies of its records.
	firstScan = 50
	maxBodies = 1 << 20
)

// filter selects records. A store finds records by state or ID; the other fields are
// compared here.
type filter struct {
	State     store.State // Absent: any
	Operation string
	Scope     string // as pages show it
	Key       string
	Code      string // of a failure
	Error     string // of the last attempt, as errorClass returns it
	Overdue   bool
	Dead      bool // dead letters only
}

// parseFilter reads the filter of a request.
func parseFilter(r *http.Request) (f filter, err error) {
	f = filter{
		Operation: r.FormValue("operation"), Scope: strings.TrimSpace(r.FormValue("scope")), Key: r.FormValue("key"),
		Code: r.FormValue("code"), Error: r.FormValue("error"), Overdue: r.FormValue("overdue") != "", Dead: r.FormValue("dead") != "",
	}
	if text := r.FormValue("state"); text != "" {
		at := slices.IndexFunc(store.States(), func(s store.State) bool { return strings.EqualFold(s.String(), text) })
		if at < 0 {
			return f, badRequest("There is no such state.")
		}
		f.State = store.States()[at]
	}
	// A scope and a key are shown in a quoted form, which can be longer.
	if len(f.Operation) > store.MaxOperation || len(f.Scope) > 4*store.MaxScope || len(f.Key) > 4*store.MaxKey || len(f.Code)+len(f.Error) > store.MaxOperation {
		return f, badRequest("The search is too long.")
	}
	return f, nil
}

// values returns the filter as parameters of a URL.
func (f *filter) values(engine string) url.Values {
	v := make(url.Values)
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	set("engine", engine)
	if f.State != store.Absent {
		set("state", strings.ToLower(f.State.String()))
	}
	set("operation", f.Operation)
	set("scope", f.Scope)
	set("key", f.Key)
	set("code", f.Code)
	set("error", f.Error)
	if f.Overdue {
		set("overdue", "1")
	}
	if f.Dead {
		set("dead", "1")
	}
	return v
}

// matches reports whether r matches.
func (f *filter) matches(r *store.Record) bool {
	return (f.State == store.Absent || r.State == f.State) &&
		(f.Operation == "" || r.Operation == f.Operation) &&
		(f.Scope == "" || recordview.Scope(r) == f.Scope) &&
		(f.Key == "" || r.Key == f.Key || recordview.Safe(r.Key) == f.Key) &&
		(!f.Overdue || isOverdue(r)) &&
		(!f.Dead || admin.IsDeadLetter(*r)) &&
		(f.Code == "" || codeOf(r) == f.Code) &&
		(f.Error == "" || errorClass(lastError(r)) == f.Error)
}

// isOverdue reports whether r waits for a worker, or its lease has expired.
func isOverdue(r *store.Record) bool { return recordview.HasDue(r.State) && r.Due <= 0 }

// codeOf returns the code of a stored failure.
func codeOf(r *store.Record) string {
	if r.State != store.Failed {
		return ""
	}
	return recordview.OutcomeOf(r, false).Code
}

// variable matches the parts of an error that differ from record to record.
var variable = regexp.MustCompile(`0x[0-9a-fA-F]+|[0-9a-fA-F-]{16,}|\d+`)

// lastError returns the error of the last attempt, or the message of the failure, without
// the numbers in it.
func lastError(r *store.Record) string {
	text := recordview.OutcomeOf(r, true).Message
	tries := recordview.TriesOf(r, true)
	for _, try := range slices.Backward(tries) {
		if try.Error != "" {
			text = try.Error
			break
		}
	}
	return variable.ReplaceAllString(text, "…")
}

// errorClass returns a short hash of an error for URLs, in which the error itself stays
// hidden.
func errorClass(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// searchResult is the result of a search.
type searchResult struct {
	Records []store.Record
	Read    int      // records that were compared
	Next    store.ID // where to go on
	More    bool     // there may be more
	Stopped bool     // because of the time, and not because the page is full
}

// scan searches in the order of the IDs after an ID, for at most want records, until the
// budget is spent.
func (f *filter) scan(ctx context.Context, e semel.Runner, after store.ID, want int, budget time.Duration) (searchResult, error) {
	// A store reads the records of a state by an index, apart from those that
	// succeeded: these are most of all records, or are read with the others.
	q := store.Query{State: f.State, After: after, Limit: firstScan}
	if q.State == store.Succeeded {
		q.State = store.Absent
	}
	begun := clock.Now()
	res := searchResult{Next: after}
	for {
		page, err := admin.List(ctx, e, q)
		if err != nil {
			return res, err
		}
		bodies := 0
		for i := range page {
			r := &page[i]
			res.Read++
			if bodies += len(r.Input) + len(r.Outcome); !f.matches(r) {
				continue
			}
			if len(res.Records) == want {
				res.More = true
				return res, nil
			}
			r.Input = nil // no list shows it, and it may be large
			res.Records = append(res.Records, *r)
			res.Next = r.ID
		}
		if len(page) < q.PageSize() {
			return res, nil
		}
		q.After = page[len(page)-1].ID
		if clock.Since(begun) > budget {
			res.Next, res.More, res.Stopped = q.After, true, true
			return res, nil
		}
		if q.Limit = min(2*q.Limit, store.MaxLimit); bodies > maxBodies {
			q.Limit = firstScan
		}
	}
}

// exact returns the records of a key, if the filter names a key and a scope: their IDs are
// computed from these and the operation.
func (f *filter) exact(ctx context.Context, e semel.Runner, operations []string) (records []store.Record, err error) {
	if f.Operation != "" {
		operations = []string{f.Operation}
	}
	scope := semel.Shared()
	if f.Scope != "shared" {
		scope = semel.ScopeOf(strings.Split(f.Scope, " / ")...)
	}
	for _, operation := range operations {
		r, ok, err := admin.Get(ctx, e, operation, scope, f.Key)
		if err != nil {
			return nil, err
		}
		if ok && f.matches(&r) {
			records = append(records, r)
		}
	}
	return records, nil
}
