package ops

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"time"
	"unicode/utf8"

	"github.com/semelgo/semel/internal/recordview"
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

	Progress *recordview.Progress `json:"progress,omitempty"` // tasks and messages only

	Scope       []string `json:"scope,omitempty"`        // the parts of the scope; absent if the scope is shared
	ScopeBase64 string   `json:"scope_base64,omitempty"` // the stored scope, if it is not text
	Key         string   `json:"key,omitempty"`
	KeyBase64   string   `json:"key_base64,omitempty"` // if the key is not text
}

func viewOf(r *store.Record, s salt, reveal bool) recordView {
	v := recordView{
		ID: r.ID.String(), State: r.State.String(), Operation: r.Operation, Attempt: r.Attempt,
		Age: seconds(r.Age), Since: seconds(r.Since), Tainted: r.Tainted,
		Priority: r.Priority, ScopeHash: s.hash(r.Scope), KeyHash: s.hash(r.Key), Progress: recordview.ProgressOf(r),
	}
	if recordview.HasDue(r.State) {
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
	if parts, ok := recordview.ScopeParts(r.Scope); ok && utf8.ValidString(r.Scope) {
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

// seconds is a duration in JSON: a number of seconds, with milliseconds.
type seconds time.Duration

// MarshalJSON writes s as a number.
func (s seconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(math.Round(time.Duration(s).Seconds()*1000) / 1000)
}
