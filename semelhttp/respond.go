package semelhttp

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// send sends everything that the handler has written.
func (x *exchange) send() {
	if x.run.capture.gone() {
		return
	}
	h := x.w.Header()
	after := trailers(x.own.Header, h)
	replaceHeader(h, x.own.Header)
	if after != nil && x.r.ProtoAtLeast(1, 1) {
		delete(h, contentLength)
	} else {
		setLength(h, &x.own, after != nil)
	}
	x.w.WriteHeader(x.own.Status)
	_, _ = x.w.Write(x.own.Body) // a client that hung up retries
	maps.Copy(h, after)
}

// sendStored sends a stored response, and reports whether raw is one.
func (x *exchange) sendStored(raw []byte, replayed bool) bool {
	if _, err := parse(raw, nil, nil); err != nil {
		return false
	}
	x.withdraw()
	stored, _ := parse(raw, x.w.Header(), x.keep)
	x.write(&stored, replayed)
	return true
}

// write sends a stored response whose header is set. If a probe of this attempt has
// found it, it is no replay.
func (x *exchange) write(stored *Response, replayed bool) {
	markReplayed(x.w, replayed)
	setLength(x.w.Header(), stored, false)
	x.w.WriteHeader(stored.Status)
	_, _ = x.w.Write(stored.Body) // a client that hung up retries
}

func markReplayed(w http.ResponseWriter, replayed bool) {
	if replayed {
		w.Header()[HeaderReplayed] = []string{"true"}
	}
}

func replaceHeader(h, by http.Header) {
	clear(h)
	maps.Copy(h, by)
}

// trailers returns the fields of h that are sent after the body of a response whose
// header is sent; nil if there are none and none were announced.
func trailers(sent, h http.Header) http.Header {
	announced := listed(sent["Trailer"])
	var found http.Header
	if len(announced) > 0 {
		found = make(http.Header)
	}
	for name, values := range h {
		if slices.Contains(announced, name) || strings.HasPrefix(name, http.TrailerPrefix) {
			if found == nil {
				found = make(http.Header)
			}
			found[name] = values
		}
	}
	return found
}

const contentLength = "Content-Length"

// maxAutoLength is the length up to which net/http sets Content-Length by itself,
// if the whole body is written before the handler returns. Setting the header then
// would only disturb an outer middleware that changes the body.
const maxAutoLength = 2048

// setLength sets Content-Length, or removes the one that the application has set if
// the response can have none or the server sets it. trailing means that the response
// ends in trailers: for such a response the server sets no length.
func setLength(h http.Header, a *Response, trailing bool) {
	if hasBody(a.Status) && (trailing || len(a.Body) > maxAutoLength) {
		h[contentLength] = []string{strconv.Itoa(len(a.Body))}
	} else {
		delete(h, contentLength)
	}
}
