package semelhttp

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
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
	name := cmp.Or(p.Code, p.complete().Title)
	if p.Detail == "" {
		return name
	}
	return name + ": " + p.Detail
}

// Write sends the problem as application/problem+json, with a header that keeps
// caches from reusing it. Call it before anything else is written to w.
func (p *Problem) Write(w http.ResponseWriter) { sendError(w, inRFC9457(p.complete())) }

// inRFC9457 returns a complete problem as it is sent in the format of RFC 9457.
func inRFC9457(p Problem) Response { return p.response("application/problem+json", p) }

// response returns the response with that body, which is p in a format of the media
// type.
func (p *Problem) response(mediaType string, body any) Response {
	text, _ := json.Marshal(body) // strings and numbers can always be encoded
	h := http.Header{
		"Content-Type":  {mediaType},
		"Cache-Control": {"no-cache"}, // not no-store, because a handler's problem is stored
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(seconds(p.RetryAfter), 10))
	}
	return Response{Status: p.Status, Header: h, Body: text}
}

// sendError sends r instead of the response whose header w has.
func sendError(w http.ResponseWriter, r Response) {
	h := w.Header()
	for _, name := range [...]string{"Content-Encoding", "Etag", "Last-Modified"} {
		h.Del(name)
	}
	if noStore(h) {
		r.Header.Del("Cache-Control")
	}
	maps.Copy(h, r.Header)
	h.Set(contentLength, strconv.Itoa(len(r.Body)))
	w.WriteHeader(r.Status)
	_, _ = w.Write(r.Body) // the client hung up
}

// complete returns a copy of p with the defaults filled in.
func (p *Problem) complete() Problem {
	full := *p
	full.Status = cmp.Or(p.Status, http.StatusInternalServerError)
	full.Title = cmp.Or(p.Title, http.StatusText(full.Status))
	return full
}

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }
