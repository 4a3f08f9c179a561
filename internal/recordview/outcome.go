package recordview

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/store"
)

// Kinds of outcomes in JSON. They are stable.
const (
	KindNone        = "none"
	KindJSON        = "json"
	KindRaw         = "raw"
	KindFailure     = "failure"
	KindUnavailable = "unavailable" // succeeded, and the result is not available
	KindProgress    = "progress"    // no outcome yet: the history of the attempts
)

// Outcome is the JSON view of an outcome. The result and the details of a
// failure are printed with --reveal only.
type Outcome struct {
	Kind    string          `json:"kind"`
	Bytes   int             `json:"bytes"`
	Code    string          `json:"code,omitempty"`
	Message string          `json:"message,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
	Reason  string          `json:"reason,omitempty"` // why the result is not available
	JSON    json.RawMessage `json:"json,omitempty"`
	Base64  []byte          `json:"base64,omitempty"`
}

// OutcomeOf decodes the outcome of r.
func OutcomeOf(r *store.Record, reveal bool) Outcome {
	v := Outcome{Kind: KindNone, Bytes: len(r.Outcome)}
	o := &adapter.Outcome{Record: *r}
	var text json.RawMessage
	var raw semel.Raw
	switch err := o.Decode(&text); {
	case o.Failure() != nil:
		f := o.Failure()
		v.Kind, v.Code = KindFailure, f.Code
		if reveal || !quotesError(r, f) {
			v.Message = f.Message
		}
		if reveal {
			v.Details = f.Details
		}
	case len(r.Outcome) == 0:
	case ProgressOf(r) != nil:
		v.Kind = KindProgress
	case err == nil:
		v.Kind = KindJSON
		if reveal {
			v.JSON = text
		}
	case o.Decode(&raw) == nil:
		v.Kind = KindRaw
		if reveal {
			v.Base64 = raw
		}
	default:
		v.Kind, v.Reason = KindUnavailable, reasonOf(err)
	}
	return v
}

// reasonOf returns the reason in err why the result is not available.
func reasonOf(err error) string {
	if !errors.Is(err, semel.ErrResultUnavailable) {
		return err.Error()
	}
	return strings.TrimPrefix(err.Error(), semel.ErrResultUnavailable.Error()+": ")
}
