package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/store"
)

// filterFlags select records by their fields.
type filterFlags struct {
	target // only operation, scope and key, each if given

	state, code  string
	overdue      bool
	since, until timeFlag
	limit        int
}

// addFilterFlags adds the flags that a target does not have. about is the
// beginning of their help texts.
func (f *filterFlags) addFilterFlags(c *cobra.Command, about string, limit int) {
	flags := c.Flags()
	flags.StringVar(&f.state, "state", "", about+"only records in this state: pending, inprogress, indoubt, succeeded or failed")
	flags.StringVar(&f.code, "code", "", about+"only Failed records with this failure code")
	flags.Var(&f.since, "since", about+"only records whose state changed after this time: 2h or 1d ago, or an instant such as 2026-01-31T15:04:05Z")
	flags.Var(&f.until, "until", about+"only records whose state changed before this time")
	flags.BoolVar(&f.overdue, "overdue", false, about+"only Pending records that are due and InProgress records whose lease has expired")
	flags.IntVar(&f.limit, "limit", limit, about+"maximum number of records; 0 means all")
	completeStates(c, "state", store.States()...)
}

// given returns the names of the given flags, without those of the target.
func (f *filterFlags) given(flags *pflag.FlagSet) (names []string) {
	for _, name := range []string{"state", "code", "since", "until", "overdue", "limit"} {
		if flags.Changed(name) {
			names = append(names, "--"+name)
		}
	}
	return names
}

// recordFilter is the parsed filter.
type recordFilter struct {
	*filterFlags

	queries []store.Query // run one after the other
	scope   *semel.Scope
	found   map[store.ID]store.Token // of the records that --all has selected
}

// narrows reports whether f selects less than all records.
func (f *filterFlags) narrows() bool {
	return f.named() || f.state != "" || f.code != "" || f.overdue || f.since.given() || f.until.given()
}

// read parses f for records in the given states; none means any state. It
// rejects a flag with an empty value, which a script with an unset variable
// passes.
func (f *filterFlags) read(flags *pflag.FlagSet, among ...store.State) (*recordFilter, error) {
	w := &recordFilter{filterFlags: f}
	for _, name := range []string{"operation", "key", "state", "code"} {
		if flag := flags.Lookup(name); flag.Changed && flag.Value.String() == "" {
			return nil, exit.Usagef("--%s is empty", name)
		}
	}
	if f.limit < 0 {
		return nil, exit.Usagef("--limit %d is less than zero", f.limit)
	}
	if f.shared || len(f.scope) > 0 {
		scope, err := f.inScope()
		if err != nil {
			return nil, err
		}
		w.scope = &scope
	}
	states := among
	switch {
	case f.state != "":
		if len(among) == 0 {
			among = store.States()
		}
		s, err := parseState("state", f.state, among...)
		if err != nil {
			return nil, err
		}
		states = []store.State{s}
	case len(among) == 0:
		states = []store.State{store.Absent} // Absent means any state
	}
	if f.code != "" {
		if !slices.Contains(states, store.Failed) && states[0] != store.Absent {
			return nil, exit.Usagef("--code is for Failed records only")
		}
		states = []store.State{store.Failed}
	}
	for _, s := range states {
		w.queries = append(w.queries, store.Query{State: s, Operation: f.operation, Due: f.overdue})
	}
	return w, nil
}

// matches reports whether r matches the filter, for the records that the queries return.
func (w *recordFilter) matches(r *store.Record) bool {
	changed := time.Now().Add(-r.Since)
	switch {
	case w.key != "" && r.Key != w.key,
		w.scope != nil && r.Scope != w.scope.Bytes(),
		w.since.given() && changed.Before(w.since.at),
		w.until.given() && changed.After(w.until.at):
		return false
	case w.code == "":
		return true
	}
	o := &adapter.Outcome{Record: *r}
	failure := o.Failure()
	return failure != nil && failure.Code == w.code
}

// stillMatches reports whether r still matches, in case it was changed after it was
// found.
func (w *recordFilter) stillMatches(r *store.Record) bool {
	in := func(q store.Query) bool { return q.State == store.Absent || q.State == r.State }
	return slices.ContainsFunc(w.queries, in) && w.matches(r)
}

// readReportEvery is the number of records between two progress lines.
const readReportEvery = 100_000

// each calls fn for each matching record, until fn returns false. Long work is
// reported to progress.
func (w *recordFilter) each(ctx context.Context, db *database, progress func(read int), fn func(r *store.Record) (bool, error)) error {
	read, stopped := 0, false
	for _, q := range w.queries {
		err := scan(ctx, db.records, q, func(r *store.Record) (bool, error) {
			if read++; read%readReportEvery == 0 {
				progress(read)
			}
			if !w.matches(r) {
				return true, nil
			}
			more, err := fn(r)
			stopped = !more
			return more, err
		})
		if err != nil || stopped {
			return err
		}
	}
	return nil
}

// readProgress prints to standard error how many records were read.
func readProgress(c *cobra.Command) func(read int) {
	return func(read int) { fmt.Fprintf(c.ErrOrStderr(), "semel: %d records read so far\n", read) }
}

// timeFlag is a flag for a time: an instant, or how long ago.
type timeFlag struct {
	at   time.Time
	text string
}

func (m *timeFlag) given() bool    { return m.text != "" }
func (m *timeFlag) String() string { return m.text }

// Type is the type of the value in the help text.
func (*timeFlag) Type() string { return "time" }

// Set parses the flag's value.
func (m *timeFlag) Set(text string) error {
	m.text = strings.TrimSpace(text)
	if at, err := time.Parse(time.RFC3339, m.text); err == nil {
		m.at = at
		return nil
	}
	d, err := parseDuration(m.text)
	if err != nil || d < 0 {
		return fmt.Errorf("invalid time %q: want how long ago, such as 90m or 1d, or an instant such as 2026-01-31T15:04:05Z", text)
	}
	m.at = time.Now().Add(-d)
	return nil
}

// scan calls each for every record of q, until each returns false.
func scan(ctx context.Context, s store.Store, q store.Query, each func(r *store.Record) (bool, error)) error {
	for {
		page, err := s.Scan(ctx, q)
		if err != nil {
			return fmt.Errorf("list records: %w", err)
		}
		for i := range page {
			if more, err := each(&page[i]); err != nil || !more {
				return err
			}
			q.After = page[i].ID
		}
		if q.Due { // ordered by Due, not by ID
			q.Skip += len(page)
		}
		if len(page) < q.PageSize() {
			return nil
		}
	}
}
