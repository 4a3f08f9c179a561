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

// mayAsk reports whether a response with that status can invite another try. A 409
// and a 423 do so only with what invites reads in the response; keyed: the request
// has a key.
func mayAsk(status int, keyed bool) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusConflict, http.StatusLocked:
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
	case conditional(resp.StatusCode) && !invites(resp):
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

// conditional reports whether a response with that status is final unless it says
// otherwise: most APIs answer 409 when a name is taken or a version is old.
func conditional(status int) bool {
	return status == http.StatusConflict || status == http.StatusLocked
}

// invites reports whether resp says by itself that a later try may be answered
// otherwise: by Retry-After or Stripe-Should-Retry, by the code of this package's
// problem, or by the code in Stripe's error.
func invites(resp *http.Response) bool {
	if resp.Header.Get("Retry-After") != "" || resp.Header.Get(headerShouldRetry) == "true" {
		return true
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if _, all := resp.Body.(held); err != nil || !all {
		return false
	}
	defer rewind(resp)
	switch kind {
	case "application/problem+json":
		var p struct{ Code string }
		return json.NewDecoder(resp.Body).Decode(&p) == nil && p.Code == codeInProgress
	case "application/json":
		var p struct{ Error struct{ Code string } }
		return json.NewDecoder(resp.Body).Decode(&p) == nil && p.Error.Code == stripeKeyInUse
	default:
		return false
	}
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
