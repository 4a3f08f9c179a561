package codec

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/store"
)

// Progress is the progress of an operation with [Retry] over its attempts. It is
// stored in the record until that is final, and in the stored failure of a record
// that was exhausted or cancelled.
type Progress struct {
	// Errors is the number of attempts that ended in an error, since the last
	// redrive.
	Errors int `json:"errors,omitempty"`
	// Snoozes is the number of attempts that returned [Snooze].
	Snoozes int `json:"snoozes,omitempty"`
	// Redrives is how often an operator redrove the record.
	Redrives int `json:"redrives,omitempty"`
	// Ended is the number of attempts that reported an end; the others crashed.
	Ended uint32 `json:"ended,omitempty"`
	// Retention is the operation's retention. Engines and tools that do not know
	// the operation use it. Zero: unknown.
	Retention time.Duration `json:"retention,omitempty"`
	// Tries are the last ten known attempts, oldest first.
	Tries []Try `json:"tries,omitempty"`
	// Trace continues the trace of the caller that enqueued the call. Nil: none.
	Trace map[string]string `json:"trace,omitempty"`
	// Issued is what was stored with a one-time token. Nil: the record is not a
	// token's.
	Issued *Issued `json:"issued,omitempty"`
}

// Issued is what is stored with a one-time token until the token is used.
type Issued struct {
	// MaxAge is the age from which the token is refused.
	MaxAge time.Duration `json:"max_age"`
	// Payload is the issuer's data, in JSON.
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Try is the end of one attempt.
type Try struct {
	Attempt uint32 `json:"attempt"`
	// Kind is error, snooze, interrupted or crash.
	Kind TryKind `json:"kind"`
	// Error is the attempt's error, at most 500 bytes of it.
	Error string `json:"error,omitempty"`
}

// TryKind says how an attempt ended. The values are stable names.
type TryKind string

// The kinds of ends of an attempt that did not end its record.
const (
	TryError       TryKind = "error"       // its function returned one
	TrySnooze      TryKind = "snooze"      // it returned Snooze
	TryInterrupted TryKind = "interrupted" // by the store, or by the end of its process; not counted as an error
	TryCrash       TryKind = "crash"       // its lease expired without an end
)

const (
	maxTries   = 10
	maxTryText = 500
)

// outcomeProgress is the first byte of a stored Progress. Only records that are not
// final have one.
const outcomeProgress = 'p'

// The codes of failures that the engine makes.
const (
	CodeExhausted = "exhausted"
	CodeCancelled = "cancelled"
)

// ProgressOf returns the progress of a record, and whether there is any. A record
// that succeeded, or that failed by its function's own error, has none.
func ProgressOf(r store.Record) (Progress, bool) {
	var p Progress
	switch {
	case r.State == store.Failed, IsDeadLetter(r):
		f := DecodeFailure(r.Outcome)
		if f.Code != CodeExhausted && f.Code != CodeCancelled || json.Unmarshal(f.Details, &p) != nil {
			return Progress{}, false
		}
		return p, true
	case r.State == store.Succeeded, len(r.Outcome) == 0, r.Outcome[0] != outcomeProgress:
		return p, false
	}
	err := json.Unmarshal(r.Outcome[1:], &p)
	return p, err == nil
}

// Crashes returns how many attempts before the n-th crashed.
func (p Progress) Crashes(n uint32) int { return int(int64(n) - 1 - int64(p.Ended)) }

// CountEnd returns p after an attempt of an operation without [Retry] has ended, so
// that a later version of the program with Retry does not count it as a crash.
func (p Progress) CountEnd() Progress {
	p.Ended++
	return p
}

// With returns p after attempt n has ended.
func (p Progress) With(n uint32, kind TryKind, err error) Progress {
	switch kind {
	case TryError:
		p.Errors++
	case TrySnooze:
		p.Snoozes++
	case TryInterrupted, TryCrash:
	}
	if kind != TryCrash {
		p.Ended++
	}
	return p.Add(n, kind, err)
}

// Add returns p with one more known attempt, which it does not count.
func (p Progress) Add(n uint32, kind TryKind, err error) Progress {
	t := Try{Attempt: n, Kind: kind}
	if err != nil {
		t.Error = Cut(err.Error(), maxTryText)
	}
	tries := append(append([]Try(nil), p.Tries...), t)
	p.Tries = tries[max(len(tries)-maxTries, 0):]
	return p
}

// Encode encodes p, without its texts if they are too long.
func (p Progress) Encode(limit int) []byte {
	text, err := json.Marshal(p)
	if err != nil || len(text) >= limit {
		p.Tries = nil
		text, _ = json.Marshal(p)
	}
	return append([]byte{outcomeProgress}, text...)
}

// Failure returns the failure of a record that the engine ends.
func (p Progress) Failure(code, why string) *callerr.Failure {
	details, _ := json.Marshal(p)
	return &callerr.Failure{Code: code, Message: why, Details: details}
}

// Reset returns the progress after a redrive: earlier attempts no longer count.
func (p Progress) Reset(current store.Record) Progress {
	p.Errors, p.Ended = 0, current.Attempt
	return p
}

// TooManyErrors is the message of a record whose errors are used up.
func TooManyErrors(err error) string { return "the last error: " + Cut(err.Error(), maxTryText) }

// TooManyCrashes is the message of a record whose crashes are used up.
func TooManyCrashes(n int) string { return fmt.Sprintf("%d attempts crashed", n) }
