package ops

import (
	"fmt"
	"strconv"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/store"
)

// progressView is the JSON view of the history of a record's attempts. Only
// show prints the tries.
type progressView struct {
	Errors   int       `json:"errors"`
	Crashes  int       `json:"crashes"`
	Snoozes  int       `json:"snoozes"`
	Redrives int       `json:"redrives"`
	Tries    []tryView `json:"tries,omitempty"`
}

// tryView is the end of one attempt. Its error is printed with --reveal only:
// it was not written for operators and may contain secrets.
type tryView struct {
	Attempt uint32        `json:"attempt"`
	Kind    admin.TryKind `json:"kind"`
	Bytes   int           `json:"bytes"`
	Error   string        `json:"error,omitempty"`
}

// progressOf returns the history of r's attempts; nil if r has none.
func progressOf(r *store.Record) *progressView {
	p, ok := admin.ProgressOf(*r)
	if !ok {
		return nil
	}
	over := int64(r.Attempt)
	if r.State == store.InProgress {
		over-- // the last attempt may still be running
	}
	return &progressView{
		Errors: p.Errors, Snoozes: p.Snoozes, Redrives: p.Redrives, Crashes: max(int(over-int64(p.Ended)), 0),
	}
}

// triesOf returns the last attempts in r's history.
func triesOf(r *store.Record, reveal bool) []tryView {
	p, _ := admin.ProgressOf(*r)
	var tries []tryView
	for _, t := range p.Tries {
		v := tryView{Attempt: t.Attempt, Kind: t.Kind, Bytes: len(t.Error)}
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

// line returns v as a line for people.
func (v *progressView) line() string {
	text := fmt.Sprintf("errors %d, crashes %d, snoozes %d", v.Errors, v.Crashes, v.Snoozes)
	if v.Redrives > 0 {
		text += fmt.Sprintf(", redrives %d", v.Redrives)
	}
	return text
}

// cells returns the numbers of errors and crashes as cells of a table.
func (v *progressView) cells() (errors, crashes string) {
	if v == nil {
		return "-", "-"
	}
	return strconv.Itoa(v.Errors), strconv.Itoa(v.Crashes)
}

// line returns v as a line for people.
func (v *tryView) line() string {
	text := string(v.Kind)
	switch {
	case v.Error != "":
		text += ": " + safe(v.Error)
	case v.Bytes > 0:
		text += fmt.Sprintf(", %d bytes", v.Bytes)
	}
	return text
}
