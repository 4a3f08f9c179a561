package semelhttp

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

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
// ends in trailers that the client cannot receive: for such a response the server sets
// no length.
func setLength(h http.Header, status int, body []byte, trailing bool) {
	if hasBody(status) && (trailing || len(body) > maxAutoLength) {
		h[contentLength] = []string{strconv.Itoa(len(body))}
	} else {
		delete(h, contentLength)
	}
}

// hasBody reports whether a response with the status can have a body.
func hasBody(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

func markReplayed(w http.ResponseWriter, replayed bool) {
	if replayed {
		w.Header()[HeaderReplayed] = []string{"true"}
	}
}
