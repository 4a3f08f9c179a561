package semelhttp

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"math"
	"mime"
	"net/http"
	"strconv"
	"time"
)

// mayAsk reports whether a response with that status may be followed by
// another one; keyed: to the same key.
func mayAsk(status int, keyed bool) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusConflict:
		return keyed
	default:
		return false
	}
}

// final reports whether the same request has the same answer: it is wrong, or
// who asks has no right to it. Then nothing else counts.
func final(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity:
		return true
	default:
		return false
	}
}

const headerShouldRetry = "Stripe-Should-Retry"

// asksAgain reports whether resp, which was read, is to be asked for again.
func (t *Transport) asksAgain(resp *http.Response, keyed bool) bool {
	switch {
	case resp.StatusCode < http.StatusBadRequest, final(resp.StatusCode), resp.Header.Get(HeaderReplayed) == "true":
		return false
	case resp.Header.Get(headerShouldRetry) == "false":
		return false
	case !mayAsk(resp.StatusCode, keyed) && (!keyed || resp.Header.Get(headerShouldRetry) != "true"):
		return false
	case resp.StatusCode == http.StatusConflict && ownConflict(resp):
		return false
	}
	return !t.saysFinal(resp)
}

func (t *Transport) saysFinal(resp *http.Response) bool {
	if t.FinalFunc == nil {
		return false
	}
	if _, all := resp.Body.(held); !all {
		resp = new(*resp)
		resp.Body = http.NoBody
	}
	defer rewind(resp)
	return t.FinalFunc(resp)
}

// ownConflict reports whether a 409 is the operation's own answer, or says that
// asking again does not help: who answers with codes sends Retry-After with the
// one that is in progress.
func ownConflict(resp *http.Response) bool {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	_, all := resp.Body.(held)
	if err != nil || kind != "application/problem+json" || resp.Header.Get("Retry-After") != "" || !all {
		return false
	}
	var p struct{ Code string }
	defer rewind(resp)
	return json.NewDecoder(resp.Body).Decode(&p) == nil && p.Code != ""
}

// longest is more than anybody waits, and leaves room to be added to.
const longest = time.Duration(math.MaxInt64 / 2)

// retryAfter returns how long resp says to stay away. A date is compared with
// the server's own, so that no clock but the server's counts.
func retryAfter(resp *http.Response) (time.Duration, bool) {
	value := resp.Header.Get("Retry-After")
	n, err := strconv.ParseUint(value, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) { // then n is the largest there is
		return time.Duration(min(n, uint64(longest/time.Second))) * time.Second, true
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	from, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		from = now()
	}
	return min(max(until.Sub(from), 0), longest), true
}

// untrusted reports whether the server is not who it should be, which another
// try does not change.
func untrusted(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}
