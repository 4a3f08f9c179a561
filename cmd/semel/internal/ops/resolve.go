package ops

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/store"
)

// resolveFlags are the flags of resolve.
type resolveFlags struct {
	selectFlags
	noteFlags

	to            string
	result        string
	raw           bool
	anyForm       bool
	code, message string
	retention     time.Duration
}

func newResolveCommand() *cobra.Command {
	var r resolveFlags
	c := &cobra.Command{
		Use:   "resolve " + targetsUse + " --to STATE --reason TEXT",
		Short: "Set the outcome of a record that is InDoubt",
		Long: `resolve sets the outcome of an InDoubt record. First find out whether the effect
happened, in the system of the effect: semel cannot check your answer.

  --to succeeded  the effect happened. Callers get --result; without --result they
                  are told that it succeeded and that the result is not available
  --to failed     the effect did not happen and will not: callers get the failure
  --to pending    the effect did not happen, or the function finds it by its child key:
                  the key may be tried again

A note with the actor, the time and the reason is kept for ever; semel show prints it.`,
		Example:           `  semel resolve 6d3f0b1c2a9e4d7788c1e5f20a4b9c63 --to succeeded --reason "charge ch_1 is in the bank's list" --result result.json`,
		ValidArgsFunction: completeRecords(store.InDoubt),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := r.selection(c, args)
			if err != nil {
				return err
			}
			wish, err := r.resolution(c)
			if err != nil && !r.dryRun {
				return err
			}
			return r.run(c, s, func(ctx context.Context, db *database, id store.ID) (any, string, error) {
				w := wish
				w.ID = id
				return resolve(ctx, db, &r, s.all, w)
			})
		},
	}
	r.states = []store.State{store.InDoubt}
	r.addFlags(c)
	return c
}

func (r *resolveFlags) addFlags(c *cobra.Command) {
	r.selectFlags.addFlags(c)
	f := c.Flags()
	f.StringVar(&r.to, "to", "", "the new state: succeeded, failed or pending")
	r.noteFlags.addFlags(f)
	f.StringVar(&r.result, "result", "", "with --to succeeded, the file with the result as JSON; - for the standard input")
	f.BoolVar(&r.raw, "raw", false, "the result is of type semel.Raw: store the file's bytes as they are")
	f.BoolVar(&r.anyForm, "any-form", false, "accept a --result of another form than results of the same operation")
	f.StringVar(&r.code, "failure-code", "", "with --to failed, the failure's code")
	f.StringVar(&r.message, "failure-message", "", "with --to failed, the failure's message")
	durationVar(f, &r.retention, "retention", 24*time.Hour, "how long to keep a record that has no retention of its operation")
	completeStates(c, "to", store.Succeeded, store.Failed, store.Pending)
	_ = c.MarkFlagFilename("result", "json") // it fails only for a flag that does not exist
}

// selection returns the records to resolve. A result belongs to a single
// record.
func (r *resolveFlags) selection(c *cobra.Command, args []string) (selection, error) {
	if r.result != "" && (r.all || len(args) > 1 || slices.Contains(args, stdinIDs)) {
		return selection{}, exit.Usagef("--result requires a single record")
	}
	return r.choose(c, args)
}

// resolution returns what the flags ask for. It reads the result before the
// database is used, because reading may fail.
func (r *resolveFlags) resolution(c *cobra.Command) (w admin.Resolution, err error) {
	if r.to == "" {
		return w, exit.Usagef("--to is required: succeeded, failed or pending")
	}
	if w.To, err = parseState("to", r.to, store.Succeeded, store.Failed, store.Pending); err != nil {
		return w, err
	}
	if err := r.check(&w); err != nil {
		return w, err
	}
	w.Actor, w.Reason = r.actor, r.reason
	if r.code != "" || r.message != "" {
		w.Failure = &semel.Failure{Code: r.code, Message: cmp.Or(r.message, "resolved as failed")}
	}
	if r.result != "" {
		w.Result, err = r.readResult(c.InOrStdin())
	}
	return w, err
}

// check checks the combination of flags.
func (r *resolveFlags) check(w *admin.Resolution) error {
	if err := r.noteFlags.check(); err != nil {
		return err
	}
	switch {
	case w.To != store.Succeeded && r.result != "":
		return exit.Usagef("--result requires --to succeeded")
	case r.retention <= 0:
		return exit.Usagef("--retention must be more than zero")
	case r.raw && r.result == "":
		return exit.Usagef("--raw requires --result")
	case r.anyForm && r.result == "":
		return exit.Usagef("--any-form requires --result")
	case w.To != store.Failed && (r.code != "" || r.message != ""):
		return exit.Usagef("--failure-code and --failure-message require --to failed")
	}
	return nil
}

// maxResult is the limit for reading a result. Stores keep less.
const maxResult = 64 << 20

// readResult reads the result of the operation.
func (r *resolveFlags) readResult(stdin io.Reader) (any, error) {
	in := stdin
	if r.result != "-" {
		f, err := os.Open(r.result)
		if err != nil {
			return nil, exit.Usagef("--result: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxResult))
	switch {
	case err != nil:
		return nil, exit.Usagef("--result: %w", err)
	case r.raw:
		return semel.Raw(text), nil
	}
	var v json.RawMessage
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, exit.Usagef("--result is not JSON: %w", err)
	}
	stored, err := json.Marshal(v) // as the engine encodes it, which can be longer
	return json.RawMessage(stored), err
}

// resolvedView is the output of `resolve --json`: the record now, the actor and
// the reason.
type resolvedView struct {
	recordView

	Actor  string `json:"actor"`
	Reason string `json:"reason"`
}

// resolve resolves the record and returns its new state. all has selected it, if it is not nil:
// the decision is about the doubt that was found then, and not about that of a later attempt.
func resolve(ctx context.Context, db *database, r *resolveFlags, all *recordFilter, w admin.Resolution) (view any, line string, err error) {
	if err := checkFits(ctx, db, w.Result); err != nil {
		return nil, "", err
	}
	was, err := recordOf(ctx, db, w.ID)
	if err != nil {
		return nil, "", err
	}
	if all != nil && was.Token != all.found[w.ID] {
		return nil, "", errRefused(was, "and has changed since --all selected it")
	}
	w.Attempt = was.Attempt
	if result, ok := w.Result.(json.RawMessage); ok && !r.anyForm {
		if err := recordview.CheckForm(ctx, db.records.Scan, was.Operation, result); err != nil {
			return nil, "", fieldFlag(err)
		}
	}
	engine, err := db.engine(semel.Options{Retention: r.retention})
	if err != nil {
		return nil, "", fieldFlag(err)
	}
	now, err := admin.Resolve(ctx, engine, w)
	switch {
	case errors.Is(err, admin.ErrNotInDoubt) && now.State == store.Absent:
		return nil, "", errNotFound(w.ID)
	case errors.Is(err, admin.ErrNotInDoubt) && now.State == store.InDoubt:
		return nil, "", errRefused(&now, "and has changed meanwhile")
	case errors.Is(err, admin.ErrNotInDoubt):
		return nil, "", &exit.Error{Code: exit.Refused, Err: fmt.Errorf("record %s is %s, not InDoubt; nothing was changed", w.ID, now.State)}
	case errors.Is(err, semel.ErrInProgress):
		return nil, "", errRecordBusy(w.ID)
	case err != nil:
		return nil, "", fieldFlag(fmt.Errorf("resolve %s: %w", w.ID, err))
	}
	return resolvedView{viewOf(&now, db.salt, false), w.Actor, w.Reason}, fmt.Sprintf("%s is %s now", now.ID, now.State), nil
}

// checkFits returns an error if the store cannot keep the result. Without this
// check the record would be resolved with a result that is not available.
func checkFits(ctx context.Context, db *database, result any) error {
	size := 0
	switch v := result.(type) {
	case json.RawMessage:
		size = len(v)
	case semel.Raw:
		size = len(v)
	}
	if size == 0 {
		return nil
	}
	caps, err := db.records.Capabilities(ctx)
	if err != nil {
		return fmt.Errorf("read the store's capabilities: %w", err)
	}
	if size >= caps.MaxOutcome { // the engine adds one byte
		return exit.Usagef("--result has %d bytes; the store keeps less than %d", size, caps.MaxOutcome)
	}
	return nil
}
