package semelhttp

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Problem is an error in the format of RFC 9457, in which every error of this
// package is sent.
type Problem struct {
	// Type is the URI of the problem's documentation. Empty: about:blank, and the
	// status says everything.
	Type string `json:"type,omitempty"`
	// Title is short and the same for every problem of the type. Empty: the status
	// as text.
	Title string `json:"title"`
	// Status is the HTTP status. Zero: 500.
	Status int `json:"status"`
	// Detail says what went wrong this time.
	Detail string `json:"detail,omitempty"`
	// Code is the problem's name for programs.
	Code string `json:"code,omitempty"`
	// Field names the header or the part of the body that is wrong.
	Field string `json:"field,omitempty"`
	// RetryAfter is sent as the Retry-After header, in whole seconds rounded up.
	// Zero: no header.
	RetryAfter time.Duration `json:"-"`
}

// Error returns the code, or the title, and the detail.
func (p *Problem) Error() string {
	name := p.Code
	if name == "" {
		name = p.complete().Title
	}
	if p.Detail == "" {
		return name
	}
	return name + ": " + p.Detail
}

// Write sends the problem as application/problem+json, with a header that keeps
// caches from reusing it. Call it before anything else is written to w.
func (p *Problem) Write(w http.ResponseWriter) {
	full := p.complete()
	text, err := json.Marshal(full)
	if err != nil { // not reachable: the fields are strings and a number
		text = []byte("{}")
	}
	full.send(w, "application/problem+json", text)
}

// send sends text, which is p in a format of that media type.
func (p *Problem) send(w http.ResponseWriter, mediaType string, text []byte) {
	h := w.Header()
	for _, name := range [...]string{"Content-Encoding", "Etag", "Last-Modified"} {
		h.Del(name) // of a response that will not be sent
	}
	h.Set("Content-Type", mediaType)
	h.Set("Content-Length", strconv.Itoa(len(text)))
	if !noStore(h) {
		h.Set("Cache-Control", "no-cache") // not no-store, because a handler's problem is stored
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(seconds(p.RetryAfter), 10))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(text) // the client hung up
}

// complete returns a copy of p with the defaults filled in.
func (p *Problem) complete() Problem {
	full := *p
	if full.Status == 0 {
		full.Status = http.StatusInternalServerError
	}
	if full.Title == "" {
		full.Title = http.StatusText(full.Status)
	}
	return full
}

// seconds rounds up.
func seconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return n
}
