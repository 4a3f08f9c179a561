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
	"github.com/semelgo/semel/store"
)

// recordView is a record as programs are told of it. Fields are only ever added.
// Scope and key are there with --reveal, and always as a hash.
type recordView struct {
	ID        string   `json:"id"`
	State     string   `json:"state"`
	Operation string   `json:"operation"`
	Attempt   uint32   `json:"attempt"`
	Age       seconds  `json:"age_seconds"`
	Since     seconds  `json:"since_seconds"`
	Due       *seconds `json:"due_seconds,omitempty"`     // of Pending and InProgress; less than zero: overdue
	Expires   *seconds `json:"expires_seconds,omitempty"` // none: never; less than zero: purgeable
	Tainted   bool     `json:"tainted"`
	Priority  int8     `json:"priority"`
	ScopeHash string   `json:"scope_hash"`
	KeyHash   string   `json:"key_hash"`

	Progress *progressView `json:"progress,omitempty"` // of those whose key the system owns

	Scope       []string `json:"scope,omitempty"`        // its parts; none if it is shared
	ScopeBase64 string   `json:"scope_base64,omitempty"` // as it is stored, when it is no text
	Key         string   `json:"key,omitempty"`
	KeyBase64   string   `json:"key_base64,omitempty"` // when it is no text
}

func viewOf(r *store.Record, s salt, reveal bool) recordView {
	v := recordView{
		ID: r.ID.String(), State: r.State.String(), Operation: r.Operation, Attempt: r.Attempt,
		Age: seconds(r.Age), Since: seconds(r.Since), Tainted: r.Tainted,
		Priority: r.Priority, ScopeHash: s.hash(r.Scope), KeyHash: s.hash(r.Key), Progress: progressOf(r),
	}
	if hasDue(r.State) {
		v.Due = new(seconds(r.Due))
	}
	if r.Expire != 0 {
		v.Expires = new(seconds(r.Expire))
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

// hasDue tells whether records in state s have a Due.
func hasDue(s store.State) bool { return s == store.Pending || s == store.InProgress }

// scopeParts returns what semel.ScopeOf was given to make a stored scope; none
// for the shared one. ok is false for a scope that it did not make.
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

// seconds is a duration as programs are told of it: a number, to the
// millisecond.
type seconds time.Duration

// MarshalJSON writes s as a number.
func (s seconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(math.Round(time.Duration(s).Seconds()*1000) / 1000)
}

// Kinds of outcomes, as programs are told of them. Stable.
const (
	kindNone        = "none"
	kindJSON        = "json"
	kindRaw         = "raw"
	kindFailure     = "failure"
	kindUnavailable = "unavailable" // it succeeded, and the result cannot be given
	kindProgress    = "progress"    // it has none yet: what the attempts so far have come to
)

// outcomeView is an outcome as programs are told of it. What a result is, and
// the details of a failure, are there with --reveal.
type outcomeView struct {
	Kind    string          `json:"kind"`
	Bytes   int             `json:"bytes"`
	Code    string          `json:"code,omitempty"`
	Message string          `json:"message,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
	Reason  string          `json:"reason,omitempty"` // why the result cannot be given
	JSON    json.RawMessage `json:"json,omitempty"`
	Base64  []byte          `json:"base64,omitempty"`
}

// outcomeOf reads the outcome of r.
func outcomeOf(r *store.Record, reveal bool) outcomeView {
	v := outcomeView{Kind: kindNone, Bytes: len(r.Outcome)}
	o := &semel.Outcome{Record: *r}
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

// reasonOf is what err says besides that the result cannot be given.
func reasonOf(err error) string {
	if !errors.Is(err, semel.ErrResultUnavailable) {
		return err.Error()
	}
	return strings.TrimPrefix(err.Error(), semel.ErrResultUnavailable.Error()+": ")
}
