package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/cmd/semel/internal/terminal"
	"github.com/semelgo/semel/store"
)

// selectFlags are the flags that select the records to change.
type selectFlags struct {
	filterFlags

	all, dryRun bool
	states      []store.State            // the states that the command changes
	matches     func(*store.Record) bool // which records in these states it changes; nil means all
}

func (g *selectFlags) addFlags(c *cobra.Command) {
	addDB(c)
	g.target.addFlags(c)
	g.addFilterFlags(c, "with --all: ", 0)
	c.Flags().BoolVar(&g.all, "all", false, "all records that --operation, --scope, --key and the other flags select")
	c.Flags().BoolVar(&g.dryRun, "dry-run", false, "list the records that would be changed, and change nothing")
}

// accepts reports whether the command would change r.
func (g *selectFlags) accepts(r *store.Record) bool {
	return slices.Contains(g.states, r.State) && (g.matches == nil || g.matches(r))
}

// choose returns the records that the command line selects.
func (g *selectFlags) choose(c *cobra.Command, args []string) (s selection, err error) {
	given := g.given(c.Flags())
	switch {
	case !g.all && len(given) > 0:
		return s, exit.Usagef("%s cannot be used without --all", strings.Join(given, ", "))
	case !g.all:
		return g.selected(c, args)
	case len(args) > 0:
		return s, exit.Usagef("give record IDs or --all, not both")
	case !g.narrows():
		return s, exit.Usagef("--all needs a flag that selects records, such as --operation or --since")
	}
	s.many = true
	s.all, err = g.read(c.Flags(), g.states...)
	return s, err
}

// run applies change to the selected records, one after the other. If several
// records can be selected, a record that cannot be changed is reported and the
// others are changed.
func (g *selectFlags) run(c *cobra.Command, s selection, change changeFunc) error {
	return withRecords(c, func(ctx context.Context, db *database) error {
		if s.all != nil {
			ids, err := g.allIDs(ctx, c, db, s.all)
			if err != nil {
				return err
			}
			s.ids = ids
		}
		switch {
		case g.dryRun:
			return g.preview(ctx, c, db, s)
		case s.many:
			return s.changeEach(ctx, c, db, change)
		}
		id, err := find(ctx, db, s.ids)
		if err != nil {
			return err
		}
		view, line, err := change(ctx, db, id)
		if err != nil {
			return err
		}
		if terminal.WantsJSON(c) {
			return terminal.WriteJSON(c, view)
		}
		fmt.Fprintln(c.OutOrStdout(), line)
		return nil
	})
}

// allIDs returns the IDs of the records that --all selects. They are read
// before the first change, because a changed record no longer matches the
// filter.
func (g *selectFlags) allIDs(ctx context.Context, c *cobra.Command, db *database, w *recordFilter) (ids []store.ID, err error) {
	more := false
	w.found = make(map[store.ID]store.Token)
	err = w.each(ctx, db, readProgress(c), func(r *store.Record) (bool, error) {
		if !g.accepts(r) {
			return true, nil
		}
		if more = g.limit > 0 && len(ids) == g.limit; more {
			return false, nil
		}
		ids, w.found[r.ID] = append(ids, r.ID), r.Token
		return true, nil
	})
	switch {
	case err != nil:
		return nil, err
	case more:
		fmt.Fprintf(c.ErrOrStderr(), "semel: there are more than %d records; --limit 0 selects all\n", g.limit)
	case len(ids) == 0:
		fmt.Fprintln(c.ErrOrStderr(), "semel: there is no such record")
	}
	return ids, nil
}

// preview lists the records that would be changed, and reports the others.
func (g *selectFlags) preview(ctx context.Context, c *cobra.Command, db *database, s selection) error {
	if !s.many {
		id, err := find(ctx, db, s.ids)
		if err != nil {
			return err
		}
		s.ids = []store.ID{id}
	}
	write := linesOf(c.OutOrStdout(), db.salt, false)
	if !terminal.WantsJSON(c) {
		write = tableOf(c.OutOrStdout(), false)
	}
	would := 0
	for _, id := range s.ids {
		r, err := recordOf(ctx, db, id)
		switch {
		case err != nil && exit.CodeOf(withCode(err)) == exit.Unavailable:
			return err
		case err != nil:
			fmt.Fprintf(c.ErrOrStderr(), "semel: %v\n", singleLineError{err})
			continue
		case !g.accepts(r):
			fmt.Fprintf(c.ErrOrStderr(), "semel: record %s is %s and would not be changed\n", id, r.State)
			continue
		}
		would++
		if err := write(r); err != nil {
			return err
		}
	}
	if !terminal.WantsJSON(c) {
		fmt.Fprintf(c.OutOrStdout(), "%d of %d records would be changed\n", would, len(s.ids))
	}
	return nil
}
