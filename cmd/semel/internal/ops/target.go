package ops

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/store"
)

// target names one record on the command line: by its ID, or by the parts from
// which the ID is computed.
type target struct {
	operation string
	scope     []string
	shared    bool
	key       string
}

const targetsUse = "{ID… | - | --all FILTER… | --operation NAME {--scope PART… | --shared} --key KEY}"

const targetsShownUse = "{ID… | - | --operation NAME {--scope PART… | --shared} --key KEY}"

func (t *target) addFlags(c *cobra.Command) {
	c.Flags().StringVar(&t.operation, "operation", "", "the record's operation, instead of its ID")
	c.Flags().StringArrayVar(&t.scope, "scope", nil, "a part of the record's scope; repeat the flag for each part")
	c.Flags().BoolVar(&t.shared, "shared", false, "the record's scope is the shared one")
	c.Flags().StringVar(&t.key, "key", "", "the record's key, as its caller sent it")
	completeOperations(c, "operation")
}

// named reports whether the flags name a record.
func (t *target) named() bool {
	return t.operation != "" || len(t.scope) > 0 || t.shared || t.key != ""
}

// ids returns the possible IDs of the record that args and the flags name. A
// record that is named by its key has several possible IDs if the key may
// contain a time.
func (t *target) ids(args []string) ([]store.ID, error) {
	switch {
	case len(args) > 0 && t.named():
		return nil, exit.Usagef("give the record's ID, or --operation, --scope and --key, not both")
	case len(args) > 0:
		id, err := parseID(args[0])
		return []store.ID{id}, err
	case !t.named():
		return nil, exit.Usagef("give the record's ID, or --operation, --scope and --key")
	case t.operation == "":
		return nil, exit.Usagef("--operation is required when there is no ID")
	case t.key == "":
		return nil, exit.Usagef("--key is required when there is no ID")
	}
	scope, err := t.inScope()
	return admin.RecordIDs(t.operation, scope, t.key), err
}

func (t *target) inScope() (semel.Scope, error) {
	switch {
	case t.shared && len(t.scope) > 0:
		return semel.Scope{}, exit.Usagef("give --scope or --shared, not both")
	case t.shared:
		return semel.Shared(), nil
	case len(t.scope) == 0:
		return semel.Scope{}, exit.Usagef("--scope is required when there is no ID, or --shared")
	}
	scope := semel.ScopeOf(t.scope...)
	if scope.Bytes() == "" {
		return scope, exit.Usagef("--scope must not be empty")
	}
	return scope, nil
}

// parseID parses an ID in the format of store.ID.
func parseID(text string) (id store.ID, err error) {
	if id, err = store.ParseID(text); err != nil {
		return id, exit.Usagef("%w", err)
	}
	return id, nil
}

// recordTries is how often a read is retried while an open transaction holds
// the record.
const recordTries = 3

// find returns the first of ids that has a record. If none has, it returns the
// first.
func find(ctx context.Context, db *database, ids []store.ID) (store.ID, error) {
	if len(ids) == 1 {
		return ids[0], nil
	}
	answers, err := db.records.Get(ctx, ids)
	if err != nil {
		return ids[0], fmt.Errorf("look for the record: %w", err)
	}
	for i := range answers {
		if answers[i].Record != nil {
			return ids[i], nil
		}
	}
	return ids[0], nil
}

// recordOf reads the current record of id. A missing record is the error
// exit.NotFound.
func recordOf(ctx context.Context, db *database, id store.ID) (*store.Record, error) {
	for range recordTries {
		answers, err := db.records.Get(ctx, []store.ID{id})
		switch {
		case err != nil:
			return nil, fmt.Errorf("read record %s: %w", id, err)
		case answers[0].Busy:
			continue
		case answers[0].Record == nil:
			return nil, errNotFound(id)
		}
		return answers[0].Record, nil
	}
	return nil, errRecordBusy(id)
}

func errNotFound(id store.ID) error {
	return &exit.Error{Code: exit.NotFound, Err: fmt.Errorf("there is no record %s", id)}
}

var errBusy = errors.New("an open transaction holds the record; try again")

func errRecordBusy(id store.ID) error {
	return &exit.Error{Code: exit.Failed, Err: fmt.Errorf("record %s: %w", id, errBusy)}
}
