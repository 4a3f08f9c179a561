package ops

import (
	"fmt"
	"strconv"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// progressView is what the attempts of a record have come to, as programs are told
// of it. The tries are told by show only.
type progressView struct {
	Errors   int       `json:"errors"`
	Crashes  int       `json:"crashes"`
	Snoozes  int       `json:"snoozes"`
	Redrives int       `json:"redrives"`
	Tries    []tryView `json:"tries,omitempty"`
}

// tryView is how one attempt ended. Its error is there with --reveal: nobody wrote
// it to be shown.
type tryView struct {
	Attempt uint32        `json:"attempt"`
	Kind    semel.TryKind `json:"kind"`
	Bytes   int           `json:"bytes"`
	Error   string        `json:"error,omitempty"`
}

// progressOf is what the attempts of r have come to; nil if r says nothing of it.
func progressOf(r *store.Record) *progressView {
	p, ok := semel.ProgressOf(*r)
	if !ok {
		return nil
	}
	over := int64(r.Attempt)
	if r.State == store.InProgress {
		over-- // the last one may yet say how it ends
	}
	return &progressView{
		Errors: p.Errors, Snoozes: p.Snoozes, Redrives: p.Redrives, Crashes: max(int(over-int64(p.Ended)), 0),
	}
}

// triesOf are the last attempts that r knows of.
func triesOf(r *store.Record, reveal bool) []tryView {
	p, _ := semel.ProgressOf(*r)
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

// codeExhausted is the code of a failure that ends a record whose attempts are
// used up. Its message quotes the last error, if there was one.
const codeExhausted = "exhausted"

// quotesError tells whether the message of r's failure is the text of an error
// that nobody wrote to be shown.
func quotesError(r *store.Record, f *semel.Failure) bool {
	p, ok := semel.ProgressOf(*r)
	if !ok || f.Code != codeExhausted {
		return false
	}
	return len(p.Tries) == 0 || p.Tries[len(p.Tries)-1].Kind != semel.TryInterrupted
}

// line is v for people.
func (v *progressView) line() string {
	text := fmt.Sprintf("errors %d, crashes %d, snoozes %d", v.Errors, v.Crashes, v.Snoozes)
	if v.Redrives > 0 {
		text += fmt.Sprintf(", redrives %d", v.Redrives)
	}
	return text
}

// cells are the errors and the crashes of v, in a table.
func (v *progressView) cells() (errors, crashes string) {
	if v == nil {
		return "-", "-"
	}
	return strconv.Itoa(v.Errors), strconv.Itoa(v.Crashes)
}

// line is v for people.
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
