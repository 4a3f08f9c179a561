package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/cmd/semel/internal/terminal"
	"github.com/semelgo/semel/store"
)

// listFlags is what the command line says about a list.
type listFlags struct {
	filterFlags

	newest, oldest, count, reveal bool
}

func newListCommand() *cobra.Command {
	var l listFlags
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List records",
		Long: `ls lists records in the order of their IDs, with --overdue those first that were due first, with --newest or --oldest in the order
in which they came to their state. AGE is the time since a record was created, SINCE the
time since it came to its state. DUE is when a Pending record may be claimed, or when the
lease of one that is InProgress ends. ERRORS and CRASHES count the attempts of tasks and
messages that ended so, as far as that is known.

Records that are Failed or InDoubt are found at once, however many others there are.
Every other list that is not just the first records by ID (--newest, --oldest, --count,
--since, --until, --scope, --key) reads all records of the state and operation.

With --json there is one JSON object for each record, on a line of its own.`,
		Example: `  semel ls --db postgres://localhost/shop --state indoubt --until 1h
  semel ls --state failed --operation mail --code exhausted --newest`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			w, err := l.check(c)
			if err != nil {
				return err
			}
			return withRecords(c, func(ctx context.Context, db *database) error {
				if l.count {
					return countChosen(ctx, c, db, w)
				}
				return l.list(ctx, c, db, w)
			})
		},
	}
	addDB(c)
	f := c.Flags()
	f.StringVar(&l.operation, "operation", "", "only this operation")
	f.StringArrayVar(&l.scope, "scope", nil, "only this scope; again for each of its parts")
	f.BoolVar(&l.shared, "shared", false, "only the shared scope")
	f.StringVar(&l.key, "key", "", "only this key, as its caller sent it")
	l.addFilterFlags(c, "", 100)
	f.BoolVar(&l.newest, "newest", false, "first those that came to their state last")
	f.BoolVar(&l.oldest, "oldest", false, "first those that came to their state first")
	f.BoolVar(&l.count, "count", false, "only count the records, whatever --limit says")
	addReveal(c, &l.reveal, "show scopes and keys, not only their hashes")
	completeOperations(c, "operation")
	return c
}

// addReveal gives c the flag that asks for what belongs to the callers.
func addReveal(c *cobra.Command, reveal *bool, about string) {
	c.Flags().BoolVar(reveal, "reveal", false, about)
}

// check reads the filter, and sees whether the flags go together.
func (l *listFlags) check(c *cobra.Command) (*recordFilter, error) {
	switch {
	case l.newest && l.oldest:
		return nil, exit.Usagef("give --newest or --oldest, not both")
	case l.count && (l.newest || l.oldest):
		return nil, exit.Usagef("--count goes without --newest and --oldest")
	}
	return l.read(c.Flags())
}

// list writes what w chooses.
func (l *listFlags) list(ctx context.Context, c *cobra.Command, db *database, w *recordFilter) error {
	write := linesOf(c.OutOrStdout(), db.salt, l.reveal)
	if !terminal.WantsJSON(c) {
		write = tableOf(c.OutOrStdout(), l.reveal)
	}
	listed, more := 0, false
	each := func(r *store.Record) (bool, error) {
		if more = l.limit > 0 && listed == l.limit; more {
			return false, nil
		}
		listed++
		return true, write(r)
	}
	var err error
	if l.newest || l.oldest {
		more, err = l.listByTime(ctx, c, db, w, write)
		listed = l.limit
	} else {
		err = w.each(ctx, db, readProgress(c), each)
	}
	if more && err == nil {
		fmt.Fprintf(c.ErrOrStderr(), "semel: there are more than %d; --limit 0 lists all\n", listed)
	}
	return err
}

// listByTime writes the first of what w chooses by the time at which they came to their state.
// It keeps twice as many as are listed in memory. It reports whether there are more.
func (l *listFlags) listByTime(ctx context.Context, c *cobra.Command, db *database, w *recordFilter, write func(*store.Record) error) (more bool, err error) {
	type dated struct {
		store.Record

		came time.Time
	}
	var first []dated
	cut := func() {
		slices.SortStableFunc(first, func(a, b dated) int {
			if l.newest {
				a, b = b, a
			}
			return a.came.Compare(b.came)
		})
		if l.limit > 0 && len(first) > l.limit {
			first, more = first[:l.limit], true
		}
	}
	err = w.each(ctx, db, readProgress(c), func(r *store.Record) (bool, error) {
		r.Input = nil // which a list does not show
		if first = append(first, dated{*r, time.Now().Add(-r.Since)}); l.limit > 0 && len(first) >= 2*l.limit {
			cut()
		}
		return true, nil
	})
	if err != nil {
		return false, err
	}
	cut()
	for i := range first {
		if err := write(&first[i].Record); err != nil {
			return false, err
		}
	}
	return more, nil
}

// chosenCountView is what `ls --count --json` writes.
type chosenCountView struct {
	Records int64 `json:"records"`
}

// countChosen writes how many records w chooses.
func countChosen(ctx context.Context, c *cobra.Command, db *database, w *recordFilter) error {
	var v chosenCountView
	err := w.each(ctx, db, readProgress(c), func(*store.Record) (bool, error) { v.Records++; return true, nil })
	switch {
	case err != nil:
		return err
	case terminal.WantsJSON(c):
		return terminal.WriteJSON(c, v)
	}
	fmt.Fprintln(c.OutOrStdout(), v.Records)
	return nil
}

// scan hands each record that q chooses to each, until that says to stop.
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
		if q.Due { // they come by their Due, not by their IDs
			q.Skip += len(page)
		}
		if len(page) < q.PageSize() {
			return nil
		}
	}
}

// linesOf returns what writes records to out as JSON, one on a line.
func linesOf(out io.Writer, s salt, reveal bool) func(*store.Record) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return func(r *store.Record) error {
		if err := e.Encode(viewOf(r, s, reveal)); err != nil {
			return &exit.Error{Code: exit.Failed, Err: fmt.Errorf("write record: %w", err)}
		}
		return nil
	}
}

// tableOf writes a heading to out, also for an empty list, and returns what writes
// records under it for people.
func tableOf(out io.Writer, reveal bool) func(*store.Record) error {
	row(out, reveal, "ID", "STATE", "ATTEMPT", "ERRORS", "CRASHES", "PRIORITY", "AGE", "SINCE", "DUE", "OPERATION", "SCOPE", "KEY")
	return func(r *store.Record) error {
		errors, crashes := progressOf(r).cells()
		row(out, reveal, r.ID.String(), r.State.String(), strconv.FormatUint(uint64(r.Attempt), 10), errors, crashes,
			strconv.Itoa(int(r.Priority)), ago(r.Age), ago(r.Since), dueOf(r), safe(r.Operation), scopeOf(r), keyOf(r))
		return nil
	}
}

// row writes cells in columns, the last two of them only if all are to be shown.
// The widths are fixed, because a list may be long and is written as it comes.
func row(out io.Writer, all bool, cells ...string) {
	widths := []int{32, 10, 7, 6, 7, 8, 7, 7, 15, 24, 16, 0}
	if !all {
		cells = cells[:len(cells)-2]
	}
	var b strings.Builder
	for i, cell := range cells {
		fmt.Fprintf(&b, "%-*s  ", widths[i], cell)
	}
	fmt.Fprintln(out, strings.TrimRight(b.String(), " "))
}
