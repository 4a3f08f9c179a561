package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/store"
)

// complete makes choices the shell completions of a flag of c.
func complete(c *cobra.Command, flag string, choices []cobra.Completion, d cobra.ShellCompDirective) {
	// It fails for a flag that does not exist or already has completions.
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(choices, d))
}

// completeStates makes states the shell completions of a flag of c.
func completeStates(c *cobra.Command, flag string, states ...store.State) {
	var names []cobra.Completion
	for _, s := range states {
		names = append(names, strings.ToLower(s.String()))
	}
	complete(c, flag, names, cobra.ShellCompDirectiveNoFileComp)
}

// completionTimeout bounds the time that a shell waits for the database.
const completionTimeout = 2 * time.Second

// completeOperations makes the operations with records the shell completions of
// a flag of c, if the database answers in time.
func completeOperations(c *cobra.Command, flag string) {
	_ = c.RegisterFlagCompletionFunc(flag,
		func(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return operations(c, typed), cobra.ShellCompDirectiveNoFileComp
		})
}

// operations returns the operations with records whose names begin with typed.
func operations(c *cobra.Command, typed string) (names []cobra.Completion) {
	withDatabaseSoon(c, func(ctx context.Context, db *database) {
		counts, err := countsOf(ctx, db)
		if err != nil {
			return
		}
		for _, n := range counts {
			if strings.HasPrefix(n.Operation, typed) {
				names = append(names, n.Operation)
			}
		}
	})
	return slices.Compact(names) // they are ordered by name
}

// completeRecords completes the argument of a command from the IDs of records
// in a state, of the first page only.
func completeRecords(state store.State) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return recordIDs(c, state, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// recordIDs returns the IDs of records in a state that begin with typed.
func recordIDs(c *cobra.Command, state store.State, typed string) (ids []cobra.Completion) {
	withDatabaseSoon(c, func(ctx context.Context, db *database) {
		page, err := db.records.Scan(ctx, store.Query{State: state})
		if err != nil {
			return
		}
		for i := range page {
			if id := page[i].ID.String(); strings.HasPrefix(id, typed) {
				ids = append(ids, cobra.CompletionWithDesc(id, recordview.Safe(page[i].Operation)))
			}
		}
	})
	return ids
}

// withDatabaseSoon runs fn with the database that c names, if the database
// answers in time.
func withDatabaseSoon(c *cobra.Command, fn func(ctx context.Context, db *database)) {
	ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
	defer cancel()
	at, err := dbOf(c)
	if err != nil {
		return
	}
	db, err := open(ctx, at, mustExist)
	if err != nil {
		return
	}
	defer db.close()
	fn(ctx, db)
}

// countsOf counts the records.
func countsOf(ctx context.Context, db *database) ([]store.Count, error) {
	counter, ok := db.records.(store.Counter)
	if !ok {
		return nil, &exit.Error{Code: exit.Failed, Err: fmt.Errorf("%s cannot count its records", db.name)}
	}
	return counter.Counts(ctx)
}

// parseState parses the name of one of the states, in any case.
func parseState(flag, name string, among ...store.State) (store.State, error) {
	var names []string
	for _, s := range among {
		if strings.EqualFold(name, s.String()) {
			return s, nil
		}
		names = append(names, strings.ToLower(s.String()))
	}
	return store.Absent, exit.Usagef("--%s %q is none of %s", flag, name, strings.Join(names, ", "))
}
