package client

import (
	"net/http"
	"time"
)

// Retry describes for [Transport.OnRetry] a try that is followed by another.
type Retry struct {
	// Request is the request of the caller. It must not be changed.
	Request *http.Request
	// Key is the key's header line of every try. Empty: there is none.
	Key string
	// Try is the number of the try that ended, from 1.
	Try int
	// Wait is how long the Transport waits before the next try.
	Wait time.Duration
	// Status is the status code of the response. Zero: there was none.
	Status int
	// Err is the error of the try. Nil: it ended with a response.
	Err error
}

type triesName struct{}

// TriesOf returns how many tries a [Transport] made until it had resp: 1 if the
// first one was answered. Zero: resp did not come through a Transport, or its Base
// did not set Response.Request. After a redirect it counts the tries of the last
// request. If no response came, the number is in the [UnansweredError].
func TriesOf(resp *http.Response) int {
	if resp == nil || resp.Request == nil {
		return 0
	}
	n, _ := resp.Request.Context().Value(triesName{}).(int)
	return n
}

// notify calls OnRetry, if there is one.
func (s *clientCall) notify(resp *http.Response, err error, wait time.Duration) {
	if s.t.OnRetry == nil {
		return
	}
	r := Retry{Request: s.r, Key: s.line, Try: s.tries, Wait: wait, Err: err}
	if resp != nil {
		r.Status = resp.StatusCode
	}
	s.t.OnRetry(r)
}
