package semelhttp

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/semelgo/semel"
)

// failureDetails are the details of a refusal that is stored as a failure.
type failureDetails struct {
	Response []byte `json:"response,omitempty"` // in the form of Response.Raw
}

// failureCode is the prefix of the status in the code of a stored refusal. The code
// is stored even if the response is too large for the store, so that the status is
// never lost.
const failureCode = "http_"

// failureOf returns a refusal with that status, and that stored response if there is
// one, as the operation's failure.
func failureOf(status int, response semel.Raw) *semel.Failure {
	details, _ := json.Marshal(failureDetails{response}) // bytes can always be encoded
	return &semel.Failure{Code: failureCode + strconv.Itoa(status), Message: http.StatusText(status), Details: details}
}

// responseOf returns the response of a stored refusal, or nil.
func responseOf(f *semel.Failure) *Response {
	var d failureDetails
	if json.Unmarshal(f.Details, &d) != nil {
		return nil // details of another program
	}
	r, _ := ParseResponse(d.Response)
	return r
}

// refusal returns the default problem of a stored failure.
func refusal(f *semel.Failure) *Problem {
	p := problem(codeFailed, f.Message)
	if f.Code != "" {
		p.Type, p.Title, p.Code = "", "", f.Code
	}
	if text, ok := strings.CutPrefix(f.Code, failureCode); ok {
		if status, _ := strconv.Atoi(text); status >= http.StatusBadRequest && status <= 999 {
			p.Status = status
		}
	}
	return p
}
