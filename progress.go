package semel

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/semelgo/semel/store"
)

// Progress is what the attempts of an operation with [Retry] have come to so far.
// It is kept in the record until that is final, and in the stored failure of a
// record whose attempts were used up or which was cancelled.
type Progress struct {
	// Errors is how many attempts have ended in an error, since the last redrive.
	Errors int `json:"errors,omitempty"`
	// Snoozes is how many have asked to come back later.
	Snoozes int `json:"snoozes,omitempty"`
	// Redrives is how often a person has sent it round again.
	Redrives int `json:"redrives,omitempty"`
	// Ended is how many attempts have said how they ended; the others crashed.
	Ended uint32 `json:"ended,omitempty"`
	// Retention is how long the operation keeps a record that is final. Engines and
	// tools that do not know the operation keep the record for as long. Zero: unknown.
	Retention time.Duration `json:"retention,omitempty"`
	// Tries are the last ten that are known of, oldest first.
	Tries []Try `json:"tries,omitempty"`
}

// Try is how one attempt ended.
type Try struct {
	Attempt uint32 `json:"attempt"`
	// Kind is error, snooze, interrupted or crash.
	Kind TryKind `json:"kind"`
	// Error is the attempt's error, at most 500 bytes of it.
	Error string `json:"error,omitempty"`
}

// TryKind says how an attempt ended. The values are stable names.
type TryKind string

// How an attempt that did not end its record has ended.
const (
	TryError       TryKind = "error"       // its function returned one
	TrySnooze      TryKind = "snooze"      // it asked to come back later
	TryInterrupted TryKind = "interrupted" // by the store, or by the end of its process; not counted as an error
	TryCrash       TryKind = "crash"       // it said nothing, and its lease ran out
)

const (
	maxTries   = 10
	maxTryText = 500
)

// outcomeProgress is the first byte of a stored Progress. It stands only in
// records that are not final.
const outcomeProgress = 'p'

// The codes of failures that no function returned.
const (
	codeExhausted = "exhausted"
	codeCancelled = "cancelled"
)

// ProgressOf returns what the attempts of a record have come to, and whether there
// is anything to say: there is not of one that succeeded, or failed by its own
// function's word.
func ProgressOf(r store.Record) (Progress, bool) {
	var p Progress
	switch {
	case r.State == store.Failed, IsDeadLetter(r):
		f := decodeFailure(r.Outcome)
		if f.Code != codeExhausted && f.Code != codeCancelled || json.Unmarshal(f.Details, &p) != nil {
			return Progress{}, false
		}
		return p, true
	case r.State == store.Succeeded, len(r.Outcome) == 0, r.Outcome[0] != outcomeProgress:
		return p, false
	}
	err := json.Unmarshal(r.Outcome[1:], &p)
	return p, err == nil
}

// crashes is how many attempts before the n-th said nothing.
func (p Progress) crashes(n uint32) int { return int(int64(n) - 1 - int64(p.Ended)) }

// counted returns p after an attempt of an operation without [Retry] has ended: a later
// version of the program that has one does not take it for a crash.
func (p Progress) countEnd() Progress {
	p.Ended++
	return p
}

// with returns p after attempt n has ended.
func (p Progress) with(n uint32, kind TryKind, err error) Progress {
	t := Try{Attempt: n, Kind: kind}
	if err != nil {
		t.Error = cut(err.Error(), maxTryText)
	}
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
	tries := append(append([]Try(nil), p.Tries...), t)
	p.Tries = tries[max(len(tries)-maxTries, 0):]
	return p
}

// encode is p as it is stored, without its texts where they are too long.
func (p Progress) encode(limit int) []byte {
	text, err := json.Marshal(p)
	if err != nil || len(text) >= limit {
		p.Tries = nil
		text, _ = json.Marshal(p)
	}
	return append([]byte{outcomeProgress}, text...)
}

// failure is that of a record that no attempt's own word ends.
func (p Progress) failure(code, why string) *Failure {
	details, _ := json.Marshal(p)
	return &Failure{Code: code, Message: why, Details: details}
}

// anew is the progress of a record that a person lets be tried again: none of its
// attempts so far counts any more.
func (p Progress) reset(current store.Record) Progress {
	p.Errors, p.Ended = 0, current.Attempt
	return p
}

func tooManyErrors(err error) string { return "the last error: " + cut(err.Error(), maxTryText) }

func tooManyCrashes(n int) string { return fmt.Sprintf("%d attempts ended without a word", n) }
