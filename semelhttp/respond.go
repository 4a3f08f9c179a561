package semelhttp

import (
	"errors"
	"maps"
	"net/http"
	"strconv"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// respond sends the result of the engine's call: the handler's own response if the
// record has it, the stored response, or a problem.
func (x *exchange) respond(own bool, v any, replayed bool, err error) {
	if fromRecord(replayed, err) {
		if rerr := x.s.reauthorize(x.r, &x.in); rerr != nil {
			x.withdraw()
			x.s.refuse(x.w, x.r, rerr)
			return
		}
	}
	switch {
	case err != nil && !x.isOwnAnswer(err):
		x.refuse(err)
	case err != nil || own:
		x.send()
	default:
		x.replay(v, replayed)
	}
}

// isOwnAnswer reports whether the handler's own response is right although err is
// not nil: the response is the stored failure, or it is a temporary refusal or a
// server error and nothing happened.
func (x *exchange) isOwnAnswer(err error) bool {
	if _, ok := storedFailure(err); ok {
		return x.kept && !semel.Replayed(err)
	}
	if x.own.status == 0 || semel.VerdictOf(err) != store.NotCommitted {
		return false
	}
	c := x.class()
	return c == classTemporary || c == classError
}

// send sends everything that the handler has written.
func (x *exchange) send() {
	if x.capture.gone() {
		return
	}
	h := x.w.Header()
	var trailers http.Header
	if x.own.header.trailing() || !x.own.header.are(h) {
		trailers = x.own.header.trailers(h)
		x.own.header.replace(h)
	}
	if trailers == nil || !x.canStream() {
		setLength(h, &x.own, trailers != nil)
	} else {
		delete(h, contentLength)
	}
	x.w.WriteHeader(x.own.status)
	_, _ = x.w.Write(x.own.body) // a client that hung up retries
	maps.Copy(h, trailers)
}

// replay sends a stored response. If a probe of this attempt has found it, it is
// not marked as a replay.
func (x *exchange) replay(v any, replayed bool) {
	raw, _ := v.(semel.Raw)
	stored, _, err := parse(raw, new(snapshot), x.s.keep)
	if err != nil {
		x.refuse(errors.Join(semel.ErrResultUnavailable, err))
		return
	}
	x.withdraw()
	if replayed {
		x.w.Header().Set(HeaderReplayed, "true")
	}
	x.writeStored(&stored)
}

// refuse sends err's problem, or the stored failure.
func (x *exchange) refuse(err error) {
	if x.capture != nil && x.class() == classError && x.capture.gone() {
		return
	}
	x.withdraw()
	failure, ok := storedFailure(err)
	if !ok {
		x.s.refuse(x.w, x.r, x.unread(x.otherEndpoint(err)))
		return
	}
	if semel.Replayed(err) {
		x.w.Header().Set(HeaderReplayed, "true")
	}
	if stored, _, perr := parse(detailsOf(failure).Response, new(snapshot), x.s.keep); perr == nil {
		x.writeStored(&stored)
		return
	}
	p := refusal(failure)
	if status := statusIn(failure); status != 0 {
		p.Status = status
	}
	x.s.sendProblem(x.w, p)
}

// withdraw removes what the handler has set. If the client has received a part of a
// response that is not the outcome, withdraw closes the connection, so that the
// part is not taken for the response.
func (x *exchange) withdraw() {
	if x.capture == nil {
		return
	}
	if x.capture.passing {
		panic(http.ErrAbortHandler) //nolint:forbidigo // net/http's way to break off a response
	}
	x.restore()
}

// restore sets the response's headers to their values before the handler ran.
func (x *exchange) restore() {
	h := x.w.Header()
	clear(h)
	maps.Copy(h, x.before.Clone())
}

func (x *exchange) writeStored(a *responseData) {
	h := x.w.Header()
	a.header.add(h)
	setLength(h, a, false)
	x.w.WriteHeader(a.status)
	_, _ = x.w.Write(a.body) // a client that hung up retries
}

const contentLength = "Content-Length"

// maxAutoLength is the length up to which net/http sets Content-Length by itself,
// if the whole body is written before the handler returns. Setting the header then
// would only disturb an outer middleware that changes the body.
const maxAutoLength = 2048

// lengthOf returns the Content-Length to set for a response, or nil if it can have
// none or the server sets it. trailing means that the response ends in trailers:
// for such a response the server sets no length.
func lengthOf(a *responseData, trailing bool) []string {
	if hasBody(a.status) && (trailing || len(a.body) > maxAutoLength) {
		return []string{strconv.Itoa(len(a.body))}
	}
	return nil
}

// setLength sets Content-Length, unless the application has set it.
func setLength(h http.Header, a *responseData, trailing bool) {
	if length := lengthOf(a, trailing); length != nil {
		h[contentLength] = length
		return
	}
	delete(h, contentLength)
}
