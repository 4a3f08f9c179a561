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
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/store"
)

// resolveFlags is what the command line says about a record in doubt.
type resolveFlags struct {
	selectFlags

	to, reason, actor string
	result            string
	raw               bool
	code, message     string
	retention         time.Duration
}

func newResolveCommand() *cobra.Command {
	var r resolveFlags
	c := &cobra.Command{
		Use:   "resolve " + targetsUse + " --to STATE --reason TEXT",
		Short: "Settle a record that is in doubt",
		Long: `resolve says what became of a record that is InDoubt. Find out first, where the
effect would be: nothing checks what you say.

  --to succeeded  it happened. Askers get --result, or else are told that it
                  succeeded and that its result cannot be given
  --to failed     it did not happen and will not: askers get the failure
  --to pending    it did not happen: the key may try again

Who, when and why is kept for ever, and shown by semel show.`,
		Example:           `  semel resolve 6d3f… --to succeeded --reason "charge ch_1 is in the bank's list" --result charge.json`,
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
				return resolve(ctx, db, &r, w)
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
	f.StringVar(&r.to, "to", "", "what it is to be: succeeded, failed or pending")
	f.StringVar(&r.reason, "reason", "", "why; it is kept")
	f.StringVar(&r.actor, "actor", "", "who says so; $USER if it is not given")
	f.StringVar(&r.result, "result", "", "with --to succeeded, the file with the result as JSON; - for the standard input")
	f.BoolVar(&r.raw, "raw", false, "the result is of type semel.Raw: store the file's bytes as they are")
	f.StringVar(&r.code, "failure-code", "", "with --to failed, the failure's code")
	f.StringVar(&r.message, "failure-message", "", "with --to failed, the failure's message")
	durationVar(f, &r.retention, "retention", 24*time.Hour, "how long a record is kept from now on that does not say its operation's retention")
	completeStates(c, "to", store.Succeeded, store.Failed, store.Pending)
	_ = c.MarkFlagFilename("result", "json") // it fails for a flag that is not there
}

// selection reads which records are to be resolved. A result belongs to one record.
func (r *resolveFlags) selection(c *cobra.Command, args []string) (selection, error) {
	if r.result != "" && (r.all || len(args) > 1 || slices.Contains(args, stdinIDs)) {
		return selection{}, exit.Usagef("--result goes with one record only")
	}
	return r.choose(c, args)
}

// resolution is what the command line asks for. The result is read, so that nothing is
// asked of the database when it cannot be.
func (r *resolveFlags) resolution(c *cobra.Command) (w semel.Resolution, err error) {
	if r.to == "" {
		return w, exit.Usagef("--to is required: succeeded, failed or pending")
	}
	if w.To, err = parseState("to", r.to, store.Succeeded, store.Failed, store.Pending); err != nil {
		return w, err
	}
	if w.Actor = r.actor; w.Actor == "" {
		w.Actor = os.Getenv("USER")
	}
	w.Reason = strings.TrimSpace(r.reason)
	if err := r.check(&w); err != nil {
		return w, err
	}
	if r.code != "" || r.message != "" {
		w.Failure = &semel.Failure{Code: r.code, Message: cmp.Or(r.message, "resolved as failed")}
	}
	if r.result != "" {
		w.Result, err = r.readResult(c.InOrStdin())
	}
	return w, err
}

// check sees whether what the flags say goes together.
func (r *resolveFlags) check(w *semel.Resolution) error {
	switch {
	case w.Reason == "":
		return exit.Usagef("--reason is required: it is kept, for those who ask later")
	case w.Actor == "":
		return errNoActor()
	case w.To != store.Succeeded && r.result != "":
		return exit.Usagef("--result goes with --to succeeded only")
	case r.retention <= 0:
		return exit.Usagef("--retention must be more than zero")
	case r.raw && r.result == "":
		return exit.Usagef("--raw goes with --result only")
	case w.To != store.Failed && (r.code != "" || r.message != ""):
		return exit.Usagef("--failure-code and --failure-message go with --to failed only")
	}
	return nil
}

// maxResult is the most that is read of a result. Stores keep less.
const maxResult = 64 << 20

// readResult reads what the operation would have returned.
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
	stored, err := json.Marshal(v) // as the engine does it, which can be longer
	return json.RawMessage(stored), err
}

// resolvedView is what `resolve --json` writes: what stands now, and who said
// so.
type resolvedView struct {
	recordView

	Actor  string `json:"actor"`
	Reason string `json:"reason"`
}

// resolve settles the record and returns what stands.
func resolve(ctx context.Context, db *database, r *resolveFlags, w semel.Resolution) (view any, line string, err error) {
	if err := checkFits(ctx, db, w.Result); err != nil {
		return nil, "", err
	}
	engine, err := db.engine(semel.Options{Retention: r.retention})
	if err != nil {
		return nil, "", fieldFlag(err)
	}
	now, err := engine.Resolve(ctx, w)
	switch {
	case errors.Is(err, semel.ErrNotInDoubt) && now.State == store.Absent:
		return nil, "", errNotFound(w.ID)
	case errors.Is(err, semel.ErrNotInDoubt):
		return nil, "", &exit.Error{Code: exit.Refused, Err: fmt.Errorf("record %s is %s, not InDoubt; nothing was changed", w.ID, now.State)}
	case errors.Is(err, semel.ErrInProgress):
		return nil, "", errRecordBusy(w.ID)
	case err != nil:
		return nil, "", fieldFlag(fmt.Errorf("resolve %s: %w", w.ID, err))
	}
	return resolvedView{viewOf(&now, db.salt, false), w.Actor, w.Reason}, fmt.Sprintf("%s is %s now", now.ID, now.State), nil
}

// checkFits sees whether the store keeps a result, which would otherwise be settled
// as one that cannot be given.
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
	if size >= caps.MaxOutcome { // there is a byte before it
		return exit.Usagef("--result has %d bytes; the store keeps less than %d", size, caps.MaxOutcome)
	}
	return nil
}

// fieldFlag names the flag that an engine's error about a field speaks of.
func fieldFlag(err error) error {
	if f, ok := errors.AsType[*semel.FieldError](err); ok && f.Field == "Retention" {
		return exit.Usagef("--retention %s", f.Reason)
	}
	return err
}
