package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/cmd/semel/internal/terminal"
	"github.com/semelgo/semel/store"
)

// filter chooses what `ls` lists.
type filter struct {
	state     string
	operation string
	olderThan time.Duration
	overdue   bool
	limit     int
	reveal    bool
}

func newListCommand() *cobra.Command {
	var f filter
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List records",
		Long: `ls lists records in the order of their IDs, with --overdue those first that were due first. AGE is the time since a record was
created, SINCE the time since it came to its state. DUE is when a Pending record
may be claimed, or when the lease of one that is InProgress ends. ERRORS and CRASHES
count the attempts of tasks and messages that ended so, as far as that is known.

With --json there is one JSON object for each record, on a line of its own.`,
		Example:           "  semel ls --db postgres://localhost/shop --state indoubt --older-than 1h",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			return withRecords(c, func(ctx context.Context, db *database) error { return list(ctx, c, db, &f) })
		},
	}
	addDB(c)
	c.Flags().StringVar(&f.state, "state", "", "only this state: pending, inprogress, indoubt, succeeded or failed")
	c.Flags().StringVar(&f.operation, "operation", "", "only this operation")
	durationVar(c.Flags(), &f.olderThan, "older-than", 0, "only records created longer ago than this, such as 90m or 1d")
	c.Flags().BoolVar(&f.overdue, "overdue", false, "only Pending and InProgress records whose DUE has come")
	c.Flags().IntVar(&f.limit, "limit", 100, "at most so many records; 0: all of them")
	addReveal(c, &f.reveal, "show scopes and keys, not only their hashes")
	completeStates(c, "state", store.States()...)
	completeOperations(c, "operation")
	return c
}

// addReveal gives c the flag that asks for what belongs to the callers.
func addReveal(c *cobra.Command, reveal *bool, about string) {
	c.Flags().BoolVar(reveal, "reveal", false, about)
}

// query is what the store is asked for.
func (f *filter) query() (store.Query, error) {
	q := store.Query{Operation: f.operation, Due: f.overdue}
	switch {
	case f.limit < 0:
		return q, exit.Usagef("--limit %d is less than zero", f.limit)
	case f.olderThan < 0:
		return q, exit.Usagef("--older-than %v is less than zero", f.olderThan)
	case f.state == "":
		return q, nil
	}
	var err error
	q.State, err = parseState("state", f.state, store.States()...)
	return q, err
}

// admits tells whether r is to be listed, of those the store gives.
func (f *filter) admits(r *store.Record) bool {
	return f.olderThan == 0 || r.Age > f.olderThan
}

// list writes what f chooses, page by page.
func list(ctx context.Context, c *cobra.Command, db *database, f *filter) error {
	q, err := f.query()
	if err != nil {
		return err
	}
	write := linesOf(c.OutOrStdout(), db.salt, f.reveal)
	if !terminal.WantsJSON(c) {
		write = tableOf(c.OutOrStdout(), f.reveal)
	}
	listed := 0
	err = scan(ctx, db.records, q, func(r *store.Record) (bool, error) {
		switch {
		case !f.admits(r):
			return true, nil
		case f.limit > 0 && listed == f.limit:
			fmt.Fprintf(c.ErrOrStderr(), "semel: there are more than %d; --limit 0 lists all\n", listed)
			return false, nil
		}
		listed++
		return true, write(r)
	})
	return err
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
