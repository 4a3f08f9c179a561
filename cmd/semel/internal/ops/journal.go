package ops

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/cmd/semel/internal/terminal"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/journal"
	"github.com/semelgo/semel/store"
)

func newJournalCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "journal",
		Short: "List and record the outcomes of a journal",
		Long: `A program with a journal.File keeps there, durably, the outcomes that the
database did not accept. While it runs, and after a restart, it records them itself.
Use these commands when the program does not run any more.`,
	}, newJournalListCommand(), newJournalSettleCommand())
}

func newJournalListCommand() *cobra.Command {
	var reveal bool
	c := &cobra.Command{
		Use:     "ls FILE",
		Aliases: []string{"list"},
		Short:   "List the entries of a journal",
		Long: `ls lists the entries of a journal in the order in which they were written. It changes
nothing and needs no database. ENDED is how the attempt ended: succeed, fail (a
failure to keep), release (no effect), doubt (the outcome is unknown), or heartbeat
(the outcome is unknown, and the policy allows another attempt).

Unreadable lines are reported, and the exit code is 1. With --json there is one JSON
object for each entry and for each unreadable line, on a line of its own.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return listJournal(c, args[0], reveal) },
	}
	addReveal(c, &reveal, "show scopes, keys and results")
	return c
}

// entryView is the JSON view of a journal entry.
type entryView struct {
	ID        string             `json:"id"`
	Operation string             `json:"operation"`
	Attempt   uint32             `json:"attempt"`
	Ended     string             `json:"ended"`
	Outcome   recordview.Outcome `json:"outcome"`

	Scope []string `json:"scope,omitempty"`
	Key   string   `json:"key,omitempty"`
}

// invalidLineView is the JSON view of an unreadable journal line.
type invalidLineView struct {
	Line  int    `json:"line"`
	Error string `json:"error"`
}

func entryOf(e *journal.Entry, reveal bool) entryView {
	r := endRecord(e)
	v := entryView{
		ID: r.ID.String(), Operation: r.Operation, Attempt: r.Attempt, Ended: e.Step, Outcome: recordview.OutcomeOf(r, reveal),
	}
	if reveal {
		v.Key = r.Key
		v.Scope, _ = recordview.ScopeParts(r.Scope)
	}
	return v
}

// endRecord returns the record that e would write, as far as e's outcome
// defines it.
func endRecord(e *journal.Entry) *store.Record {
	r := e.Record
	r.Outcome = e.Outcome
	switch protocol.Step(e.Step) {
	case protocol.StepFail:
		r.State = store.Failed
	case protocol.StepSucceed:
		r.State = store.Succeeded
	}
	return &r
}

func listJournal(c *cobra.Command, path string, reveal bool) error {
	entries, damaged, err := readJournal(path)
	if err != nil {
		return err
	}
	if terminal.WantsJSON(c) {
		err = listJournalJSON(c.OutOrStdout(), entries, damaged, reveal)
	} else {
		listJournalText(c.OutOrStdout(), entries, reveal)
	}
	if err != nil {
		return err
	}
	return reportDamage(c.ErrOrStderr(), path, damaged)
}

func listJournalJSON(out io.Writer, entries []journal.Entry, damaged []*journal.LineError, reveal bool) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	var err error
	for i := range entries {
		err = errors.Join(err, e.Encode(entryOf(&entries[i], reveal)))
	}
	for _, d := range damaged {
		err = errors.Join(err, e.Encode(invalidLineView{d.Line, d.Err.Error()}))
	}
	return err
}

func listJournalText(out io.Writer, entries []journal.Entry, reveal bool) {
	for i := range entries {
		e := &entries[i]
		if i == 0 {
			journalRow(out, "ID", "ATTEMPT", "ENDED", "OPERATION", "OUTCOME")
		}
		outcome := recordview.OutcomeOf(endRecord(e), reveal)
		text := outcomeLine(&outcome)
		if reveal {
			text += ", of " + recordview.Scope(&e.Record) + ", key " + keyOf(&e.Record)
		}
		journalRow(out, e.Record.ID.String(), fmt.Sprint(e.Record.Attempt), e.Step, recordview.Safe(e.Record.Operation), text)
	}
}

func journalRow(out io.Writer, id, attempt, ended, operation, outcome string) {
	fmt.Fprintf(out, "%-32s  %-7s  %-9s  %-24s  %s\n", id, attempt, ended, operation, outcome)
}
