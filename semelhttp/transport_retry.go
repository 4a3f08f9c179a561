package semelhttp

import (
	"net/http"
	"time"
)

// Retry tells [Transport.OnRetry] about a try that will be followed by another.
type Retry struct {
	// Request is the request of the caller. It must not be changed.
	Request *http.Request
	// Key is the line of the key that every try carries. Empty: there is none.
	Key string
	// Try is the number of the try that ended, from 1.
	Try int
	// Wait is how long the Transport waits before the next try.
	Wait time.Duration
	// Status is the status code of the response. Zero: there was none.
	Status int
	// Err is what the try ended with. Nil: it ended with a response.
	Err error
}

type triesName struct{}

// TriesOf returns how many tries a [Transport] made until it had resp: 1 when the
// first one was answered. Zero: resp did not come through a Transport, or its Base
// did not set Response.Request. After a redirect it counts the tries of the last
// request. When no response came, the number is in the [UnansweredError].
func TriesOf(resp *http.Response) int {
	if resp == nil || resp.Request == nil {
		return 0
	}
	n, _ := resp.Request.Context().Value(triesName{}).(int)
	return n
}

// tells calls OnRetry, if there is one.
func (s *sending) tells(resp *http.Response, err error, wait time.Duration) {
	if s.t.OnRetry == nil {
		return
	}
	r := Retry{Request: s.r, Key: s.line, Try: s.tries, Wait: wait, Err: err}
	if resp != nil {
		r.Status = resp.StatusCode
	}
	s.t.OnRetry(r)
}
