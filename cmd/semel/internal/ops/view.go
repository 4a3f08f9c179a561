package ops

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/store"
)

// recordView is the JSON view of a record. Fields are only ever added. Scope
// and key are printed with --reveal; their hashes always.
type recordView struct {
	ID        string   `json:"id"`
	State     string   `json:"state"`
	Operation string   `json:"operation"`
	Attempt   uint32   `json:"attempt"`
	Age       seconds  `json:"age_seconds"`
	Since     seconds  `json:"since_seconds"`
	Due       *seconds `json:"due_seconds,omitempty"`     // Pending and InProgress only; negative means overdue
	Expires   *seconds `json:"expires_seconds,omitempty"` // absent means never; negative means purgeable
	Tainted   bool     `json:"tainted"`
	Priority  int8     `json:"priority"`
	ScopeHash string   `json:"scope_hash"`
	KeyHash   string   `json:"key_hash"`

	Progress *progressView `json:"progress,omitempty"` // tasks and messages only

	Scope       []string `json:"scope,omitempty"`        // the parts of the scope; absent if the scope is shared
	ScopeBase64 string   `json:"scope_base64,omitempty"` // the stored scope, if it is not text
	Key         string   `json:"key,omitempty"`
	KeyBase64   string   `json:"key_base64,omitempty"` // if the key is not text
}

func viewOf(r *store.Record, s salt, reveal bool) recordView {
	v := recordView{
		ID: r.ID.String(), State: r.State.String(), Operation: r.Operation, Attempt: r.Attempt,
		Age: seconds(r.Age), Since: seconds(r.Since), Tainted: r.Tainted,
		Priority: r.Priority, ScopeHash: s.hash(r.Scope), KeyHash: s.hash(r.Key), Progress: progressOf(r),
	}
	if hasDue(r.State) {
		due := seconds(r.Due)
		v.Due = &due
	}
	if r.Expire != 0 {
		expires := seconds(r.Expire)
		v.Expires = &expires
	}
	if !reveal {
		return v
	}
	if parts, ok := scopeParts(r.Scope); ok && utf8.ValidString(r.Scope) {
		v.Scope = parts
	} else {
		v.ScopeBase64 = base64.StdEncoding.EncodeToString([]byte(r.Scope))
	}
	if utf8.ValidString(r.Key) {
		v.Key = r.Key
	} else {
		v.KeyBase64 = base64.StdEncoding.EncodeToString([]byte(r.Key))
	}
	return v
}

// hasDue reports whether records in state s have a Due.
func hasDue(s store.State) bool { return s == store.Pending || s == store.InProgress }

// scopeParts returns the arguments of semel.ScopeOf for a stored scope; none
// for the shared scope. ok is false if ScopeOf did not make the scope.
func scopeParts(stored string) (parts []string, ok bool) {
	if stored == semel.Shared().Bytes() {
		return nil, true
	}
	for rest := stored; rest != ""; {
		digits, tail, _ := strings.Cut(rest, ":")
		n, err := strconv.Atoi(digits)
		if err != nil || n < 0 || n > len(tail) {
			return nil, false
		}
		parts, rest = append(parts, tail[:n]), tail[n:]
	}
	return parts, semel.ScopeOf(parts...).Bytes() == stored
}

// seconds is a duration in JSON: a number of seconds, with milliseconds.
type seconds time.Duration

// MarshalJSON writes s as a number.
func (s seconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(math.Round(time.Duration(s).Seconds()*1000) / 1000)
}

// Kinds of outcomes in JSON. They are stable.
const (
	kindNone        = "none"
	kindJSON        = "json"
	kindRaw         = "raw"
	kindFailure     = "failure"
	kindUnavailable = "unavailable" // succeeded, and the result is not available
	kindProgress    = "progress"    // no outcome yet: the history of the attempts
)

// outcomeView is the JSON view of an outcome. The result and the details of a
// failure are printed with --reveal only.
type outcomeView struct {
	Kind    string          `json:"kind"`
	Bytes   int             `json:"bytes"`
	Code    string          `json:"code,omitempty"`
	Message string          `json:"message,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
	Reason  string          `json:"reason,omitempty"` // why the result is not available
	JSON    json.RawMessage `json:"json,omitempty"`
	Base64  []byte          `json:"base64,omitempty"`
}

// outcomeOf decodes the outcome of r.
func outcomeOf(r *store.Record, reveal bool) outcomeView {
	v := outcomeView{Kind: kindNone, Bytes: len(r.Outcome)}
	o := &adapter.Outcome{Record: *r}
	var text json.RawMessage
	var raw semel.Raw
	switch err := o.Decode(&text); {
	case o.Failure() != nil:
		f := o.Failure()
		v.Kind, v.Code = kindFailure, f.Code
		if reveal || !quotesError(r, f) {
			v.Message = f.Message
		}
		if reveal {
			v.Details = f.Details
		}
	case len(r.Outcome) == 0:
	case progressOf(r) != nil:
		v.Kind = kindProgress
	case err == nil:
		v.Kind = kindJSON
		if reveal {
			v.JSON = text
		}
	case o.Decode(&raw) == nil:
		v.Kind = kindRaw
		if reveal {
			v.Base64 = raw
		}
	default:
		v.Kind, v.Reason = kindUnavailable, reasonOf(err)
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
