package semelhttp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/semelgo/semel"
)

// failureDetails are the details of a refusal that is stored as a failure.
type failureDetails struct {
	Status   int    `json:"status"`
	Response []byte `json:"response,omitempty"` // in the form of Response.Raw
}

// detailsOf returns the details of a failure, or nothing for a failure that this
// package did not make.
func detailsOf(f *semel.Failure) failureDetails {
	var kept failureDetails
	if json.Unmarshal(f.Details, &kept) != nil {
		return failureDetails{}
	}
	return kept
}

// failure returns a refusal as the operation's stored failure.
func (x *exchange) failure(storable bool) *semel.Failure {
	d := failureDetails{Status: x.own.Status}
	if x.whyNotStored(storable) == "" {
		d.Response = x.own.encode(x.keep.names(make([]string, 0, 8), x.own.Header), x.endpoint())
	}
	text, err := json.Marshal(d)
	if err != nil { // not reachable: a number and bytes
		text = nil
	}
	x.stored = true
	f := failureOf(x.own.Status)
	f.Details = text
	return f
}

// failureCode is the prefix of the status in the code of a stored refusal. The code
// is stored even if the response is too large for the store, so that the status is
// never lost.
const failureCode = "http_"

// failureOf returns a refusal with that status as the operation's failure.
func failureOf(status int) *semel.Failure {
	return &semel.Failure{Code: failureCode + strconv.Itoa(status), Message: http.StatusText(status)}
}

// statusIn returns the status of a stored refusal, or 0.
func statusIn(f *semel.Failure) int {
	status := detailsOf(f).Status
	if text, ok := strings.CutPrefix(f.Code, failureCode); ok && status == 0 {
		status, _ = strconv.Atoi(text)
	}
	if status < http.StatusBadRequest || status > 999 {
		return 0 // details of another program
	}
	return status
}

// refusalOf returns the problem for retries of a refusal whose own text is not
// available.
func refusalOf(status int) *Problem {
	p := refusal(failureOf(status))
	p.Status = status
	return p
}

// problemResponse returns p as it would be sent.
func (s *settings) problemResponse(p *Problem) Response {
	w := &responseRecorder{header: make(http.Header)}
	s.sendProblem(w, p)
	return Response{Status: w.status, Header: w.header, Body: w.body.Bytes()}
}

// responseRecorder is a ResponseWriter that keeps what a problem writes.
type responseRecorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *responseRecorder) Header() http.Header         { return w.header }
func (w *responseRecorder) WriteHeader(status int)      { w.status = status }
func (w *responseRecorder) Write(p []byte) (int, error) { return w.body.Write(p) }
