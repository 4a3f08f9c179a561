package semelhttp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/semelgo/semel"
)

// refusalDetails are the details of a refusal that is kept as a failure.
type refusalDetails struct {
	Status   int    `json:"status"`
	Response []byte `json:"response,omitempty"` // as Response.Raw gives it
}

// keptIn returns what the details of a failure hold; nothing, where it is not one
// of ours.
func keptIn(f *semel.Failure) refusalDetails {
	var kept refusalDetails
	if json.Unmarshal(f.Details, &kept) != nil {
		return refusalDetails{}
	}
	return kept
}

// failure is the response of a refusal as the operation's stored failure.
func (x *exchange) failure(storable bool) *semel.Failure {
	d := refusalDetails{Status: x.own.status}
	if x.notGiven(storable) == "" {
		d.Response = x.keepable(x.own).AppendRaw(nil)
	}
	text, err := json.Marshal(d)
	if err != nil { // not reachable: a number and bytes
		text = nil
	}
	x.kept = true
	f := failureOf(x.own.status)
	f.Details = text
	return f
}

// failureCode comes before the status in the code of a refusal that is kept. The
// code is kept also where the response is too large for the store, so that the
// status is never lost.
const failureCode = "http_"

// failureOf is a refusal with that status as the operation's failure.
func failureOf(status int) *semel.Failure {
	return &semel.Failure{Code: failureCode + strconv.Itoa(status), Message: http.StatusText(status)}
}

// statusIn returns the status of a refusal that was kept, or 0.
func statusIn(f *semel.Failure) int {
	status := keptIn(f).Status
	if text, ok := strings.CutPrefix(f.Code, failureCode); ok && status == 0 {
		status, _ = strconv.Atoi(text)
	}
	if status < http.StatusBadRequest || status > 999 {
		return 0 // somebody else's details
	}
	return status
}

// refusalOf is what repeats are told of a refusal whose own text cannot be given.
func refusalOf(status int) *Problem {
	p := refusal(failureOf(status))
	p.Status = status
	return p
}

// response is p as it would be answered.
func (s *settings) response(p *Problem) answered {
	w := &written{header: make(http.Header)}
	s.answer(w, p)
	return answered{status: w.status, header: fieldsOf(w.header), body: w.body.Bytes()}
}

// written is a ResponseWriter that keeps what a problem writes.
type written struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *written) Header() http.Header         { return w.header }
func (w *written) WriteHeader(status int)      { w.status = status }
func (w *written) Write(p []byte) (int, error) { return w.body.Write(p) }
