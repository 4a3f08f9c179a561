package semelhttp

import (
	"errors"
	"maps"
	"net/http"
	"strconv"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// answer tells the client what the engine has told: the handler's own response
// when that is what stands, what is stored, or a problem.
func (x *exchange) answer(own bool, v any, replayed bool, err error) {
	if fromRecord(replayed, err) {
		if rerr := x.s.reauthorize(x.r, &x.in); rerr != nil {
			x.withdraw()
			x.s.refuse(x.w, x.r, rerr)
			return
		}
	}
	switch {
	case err != nil && !x.stands(err):
		x.refuse(err)
	case err != nil || own:
		x.send()
	default:
		x.replay(v, replayed)
	}
}

// stands reports whether the handler's own response tells the truth although
// err is no success: it is what the kept failure says, or says no for now or
// that something broke, and nothing happened.
func (x *exchange) stands(err error) bool {
	if _, ok := storedFailure(err); ok {
		return x.kept && !semel.Replayed(err)
	}
	if x.own.status == 0 || semel.VerdictOf(err) != store.NotCommitted {
		return false
	}
	c := x.class()
	return c == classPassing || c == classBroken
}

// send gives the client all that the handler has written.
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
	if trailers == nil || !x.chunks() {
		announce(h, &x.own, trailers != nil)
	} else {
		delete(h, contentLength)
	}
	x.w.WriteHeader(x.own.status)
	_, _ = x.w.Write(x.own.body) // a client that is gone asks again
	maps.Copy(h, trailers)
}

// replay answers with a stored response. It is none of the handler's, but is not
// a replay when evidence that this very attempt looked for has made it.
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

// refuse answers with err's problem, or with the failure that is kept.
func (x *exchange) refuse(err error) {
	if x.capture != nil && x.class() == classBroken && x.capture.gone() {
		return
	}
	x.withdraw()
	failure, ok := storedFailure(err)
	if !ok {
		x.s.refuse(x.w, x.r, x.unread(x.elsewhere(err)))
		return
	}
	if semel.Replayed(err) {
		x.w.Header().Set(HeaderReplayed, "true")
	}
	if stored, _, perr := parse(keptIn(failure).Response, new(snapshot), x.s.keep); perr == nil {
		x.writeStored(&stored)
		return
	}
	p := refusal(failure)
	if status := statusIn(failure); status != 0 {
		p.Status = status
	}
	x.s.answer(x.w, p)
}

// withdraw takes back what the handler has set. It breaks the connection off when the
// client has a part of a response that is not what stands: nobody is to take it for
// the answer.
func (x *exchange) withdraw() {
	if x.capture == nil {
		return
	}
	if x.capture.passing {
		panic(http.ErrAbortHandler) //nolint:forbidigo // net/http's way to break off a response
	}
	x.restore()
}

// restore makes the response's headers what they were before the handler.
func (x *exchange) restore() {
	h := x.w.Header()
	clear(h)
	maps.Copy(h, x.before.Clone())
}

func (x *exchange) writeStored(a *answered) {
	h := x.w.Header()
	a.header.add(h)
	announce(h, a, false)
	x.w.WriteHeader(a.status)
	_, _ = x.w.Write(a.body) // a client that is gone asks again
}

const contentLength = "Content-Length"

// counted is how long a body is at most whose length net/http tells by itself, when all
// of it is written and the handler returns. An entry in the header would only be in the
// way of a middleware outside that changes the body.
const counted = 2048

// lengthOf is the Content-Length to set for a, where a response can have one and the
// server does not tell it; nil: none. Trailing says that the response ends in trailers:
// of such a one the server tells no length.
func lengthOf(a *answered, trailing bool) []string {
	if hasBody(a.status) && (trailing || len(a.body) > counted) {
		return []string{strconv.Itoa(len(a.body))}
	}
	return nil
}

// announce sets it, and leaves none that somebody else has set.
func announce(h http.Header, a *answered, trailing bool) {
	if length := lengthOf(a, trailing); length != nil {
		h[contentLength] = length
		return
	}
	delete(h, contentLength)
}
