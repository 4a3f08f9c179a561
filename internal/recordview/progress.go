package recordview

import (
	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/store"
)

// Progress is the JSON view of the history of a record's attempts. Only
// show prints the tries.
type Progress struct {
	Errors   int   `json:"errors"`
	Crashes  int   `json:"crashes"`
	Snoozes  int   `json:"snoozes"`
	Redrives int   `json:"redrives"`
	Tries    []Try `json:"tries,omitempty"`
}

// Try is the end of one attempt. Its error is printed with --reveal only:
// it was not written for operators and may contain secrets.
type Try struct {
	Attempt uint32        `json:"attempt"`
	Kind    admin.TryKind `json:"kind"`
	Bytes   int           `json:"bytes"`
	Error   string        `json:"error,omitempty"`
}

// ProgressOf returns the history of r's attempts; nil if r has none.
func ProgressOf(r *store.Record) *Progress {
	p, ok := admin.ProgressOf(*r)
	if !ok {
		return nil
	}
	over := int64(r.Attempt)
	if r.State == store.InProgress {
		over-- // the last attempt may still be running
	}
	return &Progress{
		Errors: p.Errors, Snoozes: p.Snoozes, Redrives: p.Redrives, Crashes: max(int(over-int64(p.Ended)), 0),
	}
}

// TriesOf returns the last attempts in r's history.
func TriesOf(r *store.Record, reveal bool) []Try {
	p, _ := admin.ProgressOf(*r)
	var tries []Try
	for _, t := range p.Tries {
		v := Try{Attempt: t.Attempt, Kind: t.Kind, Bytes: len(t.Error)}
		if reveal {
			v.Error = t.Error
		}
		tries = append(tries, v)
	}
	return tries
}

// codeExhausted is the failure code of a record whose attempts are used up. The
// failure's message quotes the last error, if there was one.
const codeExhausted = "exhausted"

// quotesError reports whether the failure message of r quotes an error, which
// may contain secrets.
func quotesError(r *store.Record, f *semel.Failure) bool {
	p, ok := admin.ProgressOf(*r)
	if !ok || f.Code != codeExhausted {
		return false
	}
	return len(p.Tries) == 0 || p.Tries[len(p.Tries)-1].Kind != admin.TryInterrupted
}
