package semelhttp

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	"github.com/semelgo/semel"
)

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
	text, ok := strings.CutPrefix(f.Code, failureCode)
	status, err := strconv.Atoi(text)
	if !ok || err != nil || status < http.StatusBadRequest || status > 999 {
		return 0
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
func (s *settings) response(p *Problem) Response {
	w := &written{header: make(http.Header)}
	s.answer(w, p)
	return Response{Status: w.status, Header: w.header, Body: w.body.Bytes()}
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
