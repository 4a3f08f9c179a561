package ops

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/cmd/semel/internal/terminal"
	"github.com/semelgo/semel/store"
)

// listFlags are the flags of ls.
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
		Long: `ls lists records in the order of their IDs; with --overdue by the time they are due;
with --newest or --oldest by the time of their last change of state. AGE is the time
since a record was created, SINCE the time since its last change of state. DUE is when
a Pending record may be claimed, or when the lease of an InProgress record expires.
ERRORS and CRASHES count the failed attempts of tasks and messages, if known.

Lists of Failed or InDoubt records are fast, however many other records there are.
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
	f.StringArrayVar(&l.scope, "scope", nil, "only this scope; repeat the flag for each part")
	f.BoolVar(&l.shared, "shared", false, "only the shared scope")
	f.StringVar(&l.key, "key", "", "only this key, as its caller sent it")
	l.addFilterFlags(c, "", 100)
	f.BoolVar(&l.newest, "newest", false, "latest change of state first")
	f.BoolVar(&l.oldest, "oldest", false, "earliest change of state first")
	f.BoolVar(&l.count, "count", false, "only count the records, without a limit")
	addReveal(c, &l.reveal, "show scopes and keys, not only their hashes")
	completeOperations(c, "operation")
	return c
}

// check parses the filter and checks the combination of flags.
func (l *listFlags) check(c *cobra.Command) (*recordFilter, error) {
	switch {
	case l.newest && l.oldest:
		return nil, exit.Usagef("give --newest or --oldest, not both")
	case l.count && (l.newest || l.oldest):
		return nil, exit.Usagef("--count cannot be combined with --newest or --oldest")
	}
	return l.read(c.Flags())
}

// list prints the records that w selects.
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
		fmt.Fprintf(c.ErrOrStderr(), "semel: there are more than %d records; --limit 0 lists all\n", listed)
	}
	return err
}

// listByTime prints the selected records in the order of their last change of
// state, up to the limit. It keeps at most twice the limit in memory, and
// reports whether there are more records.
func (l *listFlags) listByTime(ctx context.Context, c *cobra.Command, db *database, w *recordFilter, write func(*store.Record) error) (more bool, err error) {
	type dated struct {
		store.Record

		changed time.Time
	}
	var first []dated
	cut := func() {
		slices.SortStableFunc(first, func(a, b dated) int {
			if l.newest {
				a, b = b, a
			}
			return a.changed.Compare(b.changed)
		})
		if l.limit > 0 && len(first) > l.limit {
			first, more = first[:l.limit], true
		}
	}
	err = w.each(ctx, db, readProgress(c), func(r *store.Record) (bool, error) {
		r.Input = nil // a list does not print inputs
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

// selectedCountView is the output of `ls --count --json`.
type selectedCountView struct {
	Records int64 `json:"records"`
}

// countChosen prints the number of records that w selects.
func countChosen(ctx context.Context, c *cobra.Command, db *database, w *recordFilter) error {
	var v selectedCountView
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
