package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/cmd/semel/internal/terminal"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/journal"
)

func newJournalSettleCommand() *cobra.Command {
	var drop bool
	c := &cobra.Command{
		Use:   "settle FILE [ID…]",
		Short: "Record the outcomes of a journal",
		Long: `settle records the entries of a journal, or the entries with the given IDs, as their
program would have done, and then drops them from the file. Stop the program first: a
journal file belongs to one process at a time.

The result for each entry:
  recorded     the record has the entry's outcome, now or before; dropped
  superseded   the record was settled otherwise, and agrees; dropped
  conflict     the attempt succeeded, but the record has another outcome: an effect
               without a record, for an operator; kept
  in_doubt     the attempt had no effect, but the record is InDoubt: resolve it
               with --to pending, then settle again; kept
  absent       there is no such record: check that it is the right database; kept
  unavailable  the database did not answer; kept

The exit code is 0 if all chosen entries were dropped. With --drop the entries in
conflict and the absent ones are dropped too, after an operator has checked them.

With --json there is one JSON object for each entry, on a line of its own. Unreadable
lines are reported and left in the file. While there are any, no entry is dropped.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := newSettler(c, args, drop)
			if err != nil {
				return err
			}
			return withDB(c, func(ctx context.Context, db *database) error { return s.run(ctx, db) })
		},
	}
	addDB(c)
	c.Flags().BoolVar(&drop, "drop", false, "also drop entries in conflict and entries without a record")
	return c
}

// The results of an entry in JSON. They are stable.
const (
	settleRecorded    = "recorded"
	settleSuperseded  = "superseded"
	settleConflict    = "conflict"
	settleInDoubt     = "in_doubt"
	settleAbsent      = "absent"
	settleUnavailable = "unavailable"
)

// settleView is the JSON view of an entry's result.
type settleView struct {
	ID        string `json:"id"`
	Operation string `json:"operation"`
	Attempt   uint32 `json:"attempt"`
	Ended     string `json:"ended"`
	Settled   string `json:"settled"`
	State     string `json:"state"` // of the record, now
	Dropped   bool   `json:"dropped"`
	Error     string `json:"error,omitempty"`
}

// settler is one run of settle.
type settler struct {
	c       *cobra.Command
	path    string
	drop    bool
	entries []journal.Entry
	damaged []*journal.LineError
}

// newSettler reads the journal and selects the entries that args name.
func newSettler(c *cobra.Command, args []string, drop bool) (*settler, error) {
	s := &settler{c: c, path: args[0], drop: drop}
	var err error
	if s.entries, s.damaged, err = readJournal(s.path); err != nil || len(args) == 1 {
		return s, err
	}
	var chosen []journal.Entry
	for _, text := range args[1:] {
		id, err := parseID(text)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(s.entries, func(e journal.Entry) bool { return e.Record.ID == id })
		if i < 0 {
			return nil, &exit.Error{Code: exit.NotFound, Err: fmt.Errorf("%s has no entry %s", s.path, id)}
		}
		for _, e := range s.entries[i:] {
			if e.Record.ID == id { // may match several attempts
				chosen = append(chosen, e)
			}
		}
	}
	s.entries = chosen
	return s, nil
}

// run settles every entry, prints each result, and drops the entries that are
// done. answers reports whether the database answers at all, after it gave no
// answer for one record.
func (s *settler) run(ctx context.Context, db *database) error {
	engine, err := db.engine(semel.Options{})
	if err != nil {
		return err
	}
	file, err := s.journal()
	if err != nil {
		return err
	}
	kept := 0
	for i := range s.entries {
		e := &s.entries[i]
		v := s.settle(ctx, engine, e)
		if file != nil && s.droppable(&v) {
			if err := file.Drop(e.Record.ID, e.Record.Token); err != nil {
				return &exit.Error{Code: exit.Failed, Err: fmt.Errorf("drop entry %s: %w", v.ID, err)}
			}
			v.Dropped = true
		}
		if !v.Dropped {
			kept++
		}
		if err := s.report(&v); err != nil {
			return err
		}
		if v.Settled == settleUnavailable && !answers(ctx, db) {
			return &exit.Error{Code: exit.Unavailable, Err: errors.New("the database does not answer; nothing more was tried")}
		}
	}
	if err := reportDamage(s.c.ErrOrStderr(), s.path, s.damaged); err != nil || kept == 0 {
		return err
	}
	return &exit.Error{Code: exit.Failed, Err: fmt.Errorf("%d of %d entries are still in %s", kept, len(s.entries), s.path)}
}

// journal opens the journal for dropping entries. It returns nil if the journal
// has unreadable lines: opening would fail then, because it rewrites the file.
func (s *settler) journal() (journal.Journal, error) {
	for _, d := range s.damaged {
		if !errors.Is(d, io.ErrUnexpectedEOF) {
			return nil, nil //nolint:nilnil // no journal is what is meant
		}
	}
	j, err := journal.Open(s.path)
	if err != nil {
		return nil, &exit.Error{Code: exit.Failed, Err: err}
	}
	return j, nil
}

// droppable reports whether an entry can be dropped.
func (s *settler) droppable(v *settleView) bool {
	switch v.Settled {
	case settleRecorded, settleSuperseded:
		return true
	case settleConflict, settleAbsent:
		return s.drop
	default:
		return false
	}
}

// settle records one entry and returns the result.
func (s *settler) settle(ctx context.Context, engine semel.Runner, e *journal.Entry) settleView {
	now, recorded, err := admin.Settle(ctx, engine, *e)
	v := settleView{
		ID: e.Record.ID.String(), Operation: e.Record.Operation, Attempt: e.Record.Attempt, Ended: e.Step,
		State: now.State.String(),
	}
	if err != nil {
		v.Settled, v.State, v.Error = settleUnavailable, "", err.Error()
		return v
	}
	switch protocol.LateEnd(protocol.Step(e.Step), e.Record.Attempt, recorded, &now) {
	case protocol.LateRecorded:
		v.Settled = settleRecorded
	case protocol.LateAbsent:
		v.Settled = settleAbsent
	case protocol.LateConflict:
		v.Settled = settleConflict
	case protocol.LateInDoubt:
		v.Settled = settleInDoubt
	case protocol.LateSuperseded:
		v.Settled = settleSuperseded
	}
	return v
}

// report prints the result of an entry.
func (s *settler) report(v *settleView) error {
	out := s.c.OutOrStdout()
	if terminal.WantsJSON(s.c) {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		return e.Encode(v)
	}
	text := v.Settled
	if v.Error != "" {
		text += ": " + recordview.Safe(v.Error)
	} else {
		text += ", the record is " + v.State
	}
	if !v.Dropped {
		text += ", kept"
	}
	fmt.Fprintf(out, "%s  %s attempt %d, %s: %s\n", v.ID, recordview.Safe(v.Operation), v.Attempt, v.Ended, text)
	return nil
}
