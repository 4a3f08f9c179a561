package ops

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/cmd/semel/internal/terminal"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/store"
)

func newShowCommand() *cobra.Command {
	var t target
	var v detailFlags
	c := &cobra.Command{
		Use:   "show " + targetsShownUse,
		Short: "Show records and the notes about manual changes",
		Long: `show prints all about one or several records. The callers' data is printed as hashes
and sizes: scope, key, fingerprint, input, result, and the errors of attempts that are
retried. The code and message of a failure, and the reason why a result is not
available, are printed as they are.`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := t.selected(c, args)
			if err != nil {
				return err
			}
			return withRecords(c, func(ctx context.Context, db *database) error {
				if s.many {
					return s.showEach(ctx, c, db, v)
				}
				id, err := find(ctx, db, s.ids)
				if err != nil {
					return err
				}
				return show(ctx, c, db, id, v)
			})
		},
	}
	addDB(c)
	t.addFlags(c)
	addReveal(c, &v.reveal, "show scope, key, fingerprint, input, result, and the errors of attempts")
	c.Flags().StringArrayVar(&v.children, "child", nil,
		"also print the key that semel.ChildKey gave to the downstream call with this name; may be repeated")
	return c
}

// detailFlags are the flags that say what show prints.
type detailFlags struct {
	reveal   bool
	children []string // names of downstream calls
}

// detailView is the JSON view of a record with all its parts.
type detailView struct {
	recordView

	Owner       string             `json:"owner"` // with attempt it is the fencing token
	Fingerprint bodyView           `json:"fingerprint"`
	Input       bodyView           `json:"input"`
	Outcome     recordview.Outcome `json:"outcome"`
	ChildKeys   map[string]string  `json:"child_keys,omitempty"` // by the name of the downstream call
	Notes       []noteView         `json:"notes"`
}

// bodyView is a stored value: its size, or with --reveal its content.
type bodyView struct {
	Bytes int             `json:"bytes"`
	JSON  json.RawMessage `json:"json,omitempty"`
	Hex   string          `json:"hex,omitempty"`
}

// noteView is a note about a manual change.
type noteView struct {
	Actor   string  `json:"actor"`
	Reason  string  `json:"reason"`
	From    string  `json:"from"`
	To      string  `json:"to"`
	Attempt uint32  `json:"attempt"`
	Age     seconds `json:"age_seconds"`
}

// showEach prints each record. A missing record is reported, and the others are
// printed. With --json each record is on a line of its own.
func (s selection) showEach(ctx context.Context, c *cobra.Command, db *database, v detailFlags) error {
	lines := json.NewEncoder(c.OutOrStdout())
	lines.SetEscapeHTML(false)
	shown := 0
	for _, id := range s.ids {
		r, notes, err := readDetail(ctx, db, id)
		switch {
		case err != nil && exit.CodeOf(withCode(err)) == exit.Unavailable:
			return err
		case err != nil:
			fmt.Fprintf(c.ErrOrStderr(), "semel: %v\n", singleLineError{err})
			continue
		case terminal.WantsJSON(c):
			if err := lines.Encode(detailOf(r, notes, db.salt, v)); err != nil {
				return &exit.Error{Code: exit.Failed, Err: fmt.Errorf("write record: %w", err)}
			}
		default:
			if shown > 0 {
				fmt.Fprintln(c.OutOrStdout())
			}
			writeDetail(c.OutOrStdout(), r, notes, db.salt, v)
		}
		shown++
	}
	if shown < len(s.ids) {
		return &exit.Error{Code: exit.Failed, Err: fmt.Errorf("%d of %d records were shown", shown, len(s.ids))}
	}
	return nil
}

// readDetail reads the record of id and its notes.
func readDetail(ctx context.Context, db *database, id store.ID) (*store.Record, []store.Note, error) {
	r, err := recordOf(ctx, db, id)
	if err != nil {
		return nil, nil, err
	}
	notes, err := notesOf(ctx, db, id)
	return r, notes, err
}

// show prints the record of id and its notes.
func show(ctx context.Context, c *cobra.Command, db *database, id store.ID, v detailFlags) error {
	r, notes, err := readDetail(ctx, db, id)
	if err != nil {
		return err
	}
	if terminal.WantsJSON(c) {
		return terminal.WriteJSON(c, detailOf(r, notes, db.salt, v))
	}
	writeDetail(c.OutOrStdout(), r, notes, db.salt, v)
	return nil
}

// notesOf reads the notes about a record; none if the store keeps no notes.
func notesOf(ctx context.Context, db *database, id store.ID) ([]store.Note, error) {
	auditor, ok := db.records.(store.Auditor)
	if !ok {
		return nil, nil
	}
	notes, err := auditor.Notes(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read notes: %w", err)
	}
	return notes, nil
}

func detailOf(r *store.Record, notes []store.Note, s salt, f detailFlags) detailView {
	reveal := f.reveal
	v := detailView{
		recordView: viewOf(r, s, reveal), Owner: strconv.FormatUint(r.Owner, 16),
		Fingerprint: bodyView{Bytes: len(r.Fingerprint)}, Input: bodyView{Bytes: len(r.Input)},
		Outcome: recordview.OutcomeOf(r, reveal), Notes: []noteView{},
	}
	if v.Progress != nil {
		v.Progress.Tries = recordview.TriesOf(r, reveal)
	}
	if reveal {
		v.Fingerprint.Hex = hex.EncodeToString(r.Fingerprint)
		if json.Valid(r.Input) {
			v.Input.JSON = r.Input
		} else {
			v.Input.Hex = hex.EncodeToString(r.Input)
		}
	}
	for _, name := range f.children {
		if v.ChildKeys == nil {
			v.ChildKeys = make(map[string]string)
		}
		v.ChildKeys[name] = admin.ChildKey(*r, name)
	}
	for _, n := range notes {
		v.Notes = append(v.Notes, noteView{
			Actor: n.Actor, Reason: n.Reason, From: n.From.State.String(), To: n.To.State.String(),
			Attempt: n.To.Attempt, Age: seconds(n.Age),
		})
	}
	return v
}

// writeDetail prints a record for people.
func writeDetail(out io.Writer, r *store.Record, notes []store.Note, s salt, f detailFlags) {
	reveal := f.reveal
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	field := func(name, value string) { fmt.Fprintf(w, "%s\t%s\n", name, value) }
	outcome := recordview.OutcomeOf(r, reveal)
	tainted := "no"
	if r.Tainted {
		tainted = "an earlier attempt may have had an effect"
	}
	field("id", r.ID.String())
	field("operation", recordview.Safe(r.Operation))
	scope, key := s.hash(r.Scope), s.hash(r.Key)
	if reveal {
		scope, key = recordview.Scope(r), keyOf(r)
	}
	field("scope", scope)
	field("key", key)
	field("state", r.State.String()+" for "+recordview.Ago(r.Since))
	field("priority", strconv.Itoa(int(r.Priority)))
	field("attempt", fmt.Sprintf("%d, owner %x", r.Attempt, r.Owner))
	field("age", recordview.Ago(r.Age))
	field("due", dueOf(r))
	field("expires", expiresOf(r))
	field("tainted", tainted)
	field("fingerprint", bodyLine(r.Fingerprint, reveal))
	field("input", bodyLine(r.Input, reveal))
	field("outcome", outcomeLine(&outcome))
	for _, name := range f.children {
		field("child "+recordview.Safe(name), admin.ChildKey(*r, name))
	}
	writeProgress(field, r, reveal)
	for _, n := range notes {
		field("note", fmt.Sprintf("%s ago, %s made it %s: %s", recordview.Ago(n.Age), recordview.Safe(n.Actor), n.To.State, recordview.Safe(n.Reason)))
	}
	_ = w.Flush() // the output is closed: there is no reader
}

// writeProgress prints the history of r's attempts for people.
func writeProgress(field func(name, value string), r *store.Record, reveal bool) {
	p := recordview.ProgressOf(r)
	if p == nil {
		return
	}
	field("progress", progressLine(p))
	for _, t := range recordview.TriesOf(r, reveal) {
		field(fmt.Sprintf("try %d", t.Attempt), tryLine(&t))
	}
}

// bodyLine returns a stored value as a line for people.
func bodyLine(body []byte, reveal bool) string {
	switch {
	case len(body) == 0:
		return "none"
	case !reveal:
		return fmt.Sprintf("%d bytes", len(body))
	case json.Valid(body):
		return recordview.Safe(string(body))
	default:
		return hex.EncodeToString(body)
	}
}
