package ops

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/cmd/semel/internal/terminal"
	"github.com/semelgo/semel/store"
)

// stdinIDs is the argument for reading the IDs from standard input.
const stdinIDs = "-"

// changeFunc changes one record. It returns its output for programs and for
// people.
type changeFunc func(ctx context.Context, db *database, id store.ID) (view any, line string, err error)

// selection is the records that a command line names.
type selection struct {
	ids  []store.ID
	many bool // several IDs were given, or --all, or standard input

	all *recordFilter // nil without --all
}

// selected returns the records that args and the flags name. It reads all IDs
// before the database is opened, so that a mistyped ID changes nothing.
func (t *target) selected(c *cobra.Command, args []string) (s selection, err error) {
	s.many = len(args) > 1 || slices.Contains(args, stdinIDs)
	if !s.many {
		s.ids, err = t.ids(args)
		return s, err
	}
	if t.named() {
		return s, exit.Usagef("give record IDs, or --operation, --scope and --key, not both")
	}
	if slices.Contains(args, stdinIDs) {
		if len(args) > 1 {
			return s, exit.Usagef("give record IDs as arguments, or - to read them from the standard input, not both")
		}
		if args, err = readFields(c.InOrStdin()); err != nil {
			return s, err
		}
	}
	given := make(map[store.ID]bool, len(args))
	for _, text := range args {
		id, err := parseID(text)
		if err != nil {
			return s, err
		}
		if !given[id] {
			given[id] = true
			s.ids = append(s.ids, id)
		}
	}
	return s, nil
}

// readFields reads words separated by white space.
func readFields(in io.Reader) (all []string, err error) {
	scanner := bufio.NewScanner(in)
	scanner.Split(bufio.ScanWords)
	for scanner.Scan() {
		all = append(all, scanner.Text())
	}
	if err := scanner.Err(); err != nil {
		return nil, exit.Usagef("read record IDs from the standard input: %w", err)
	}
	return all, nil
}

// changeEach changes each record and prints one line for each. It stops early
// only if the command is interrupted or the database does not answer.
func (s selection) changeEach(ctx context.Context, c *cobra.Command, db *database, change changeFunc) error {
	lines := json.NewEncoder(c.OutOrStdout())
	lines.SetEscapeHTML(false)
	changed := 0
	for _, id := range s.ids {
		view, line, err := change(ctx, db, id)
		if err != nil {
			fmt.Fprintf(c.ErrOrStderr(), "semel: %v\n", singleLineError{err})
			if err = withCode(err); exit.CodeOf(err) == exit.Unavailable && !answers(ctx, db) || ctx.Err() != nil {
				return &exit.Error{Code: exit.CodeOf(err), Err: fmt.Errorf("stopped early: %s", s.summary(changed))}
			}
			continue
		}
		changed++
		if terminal.WantsJSON(c) {
			if err := lines.Encode(view); err != nil {
				return &exit.Error{Code: exit.Failed, Err: fmt.Errorf("write answer: %w", err)}
			}
			continue
		}
		fmt.Fprintln(c.OutOrStdout(), line)
	}
	if changed < len(s.ids) {
		return &exit.Error{Code: exit.Failed, Err: errors.New(s.summary(changed))}
	}
	return nil
}

func (s selection) summary(changed int) string {
	return fmt.Sprintf("%d of %d records were changed", changed, len(s.ids))
}
