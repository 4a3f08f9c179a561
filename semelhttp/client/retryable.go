package client

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"math"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/semelgo/semel/semelhttp/internal/wire"
)

// mayRetry reports whether a response with that status can be retried. A 409 and a
// 423 can only if invitesRetry finds a reason in the response; keyed means that the
// request has a key.
func mayRetry(status int, keyed bool) bool {
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

// final reports whether the same request always has the same response: the request
// is wrong, or its sender has no right to it. Nothing else is then considered.
func final(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity:
		return true
	default:
		return false
	}
}

const headerShouldRetry = "Stripe-Should-Retry"

// shouldRetry reports whether to retry after resp, which was read.
func (t *Transport) shouldRetry(resp *http.Response, keyed bool) bool {
	switch {
	case resp.StatusCode < http.StatusBadRequest, final(resp.StatusCode), resp.Header.Get(wire.HeaderReplayed) == "true":
		return false
	case resp.Header.Get(headerShouldRetry) == "false":
		return false
	case !mayRetry(resp.StatusCode, keyed) && (!keyed || resp.Header.Get(headerShouldRetry) != "true"):
		return false
	case needsInvitation(resp.StatusCode) && !invitesRetry(resp):
		return false
	}
	return !t.saysFinal(resp)
}

func (t *Transport) saysFinal(resp *http.Response) bool {
	if t.FinalFunc == nil {
		return false
	}
	if _, all := resp.Body.(bufferedBody); !all {
		resp = new(*resp)
		resp.Body = http.NoBody
	}
	defer rewind(resp)
	return t.FinalFunc(resp)
}

// needsInvitation reports whether a response with that status is final unless it
// says otherwise: most APIs answer 409 if a name is taken or a version is old.
func needsInvitation(status int) bool {
	return status == http.StatusConflict || status == http.StatusLocked
}

// invitesRetry reports whether resp itself says that a later try may have another
// response: by Retry-After or Stripe-Should-Retry, by the code of this package's
// problem, or by the code in Stripe's error.
func invitesRetry(resp *http.Response) bool {
	if resp.Header.Get("Retry-After") != "" || resp.Header.Get(headerShouldRetry) == "true" {
		return true
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if _, all := resp.Body.(bufferedBody); err != nil || !all {
		return false
	}
	defer rewind(resp)
	switch kind {
	case "application/problem+json":
		var p struct{ Code string }
		return json.NewDecoder(resp.Body).Decode(&p) == nil && p.Code == wire.CodeInProgress
	case "application/json":
		var p struct{ Error struct{ Code string } }
		return json.NewDecoder(resp.Body).Decode(&p) == nil && p.Error.Code == wire.StripeKeyInUse
	default:
		return false
	}
}

// maxWait is longer than any wait, and can be added to without overflow.
const maxWait = time.Duration(math.MaxInt64 / 2)

// retryAfter returns how long resp says to wait. A date is compared with the
// server's Date, so that only the server's clock matters.
func retryAfter(resp *http.Response) (time.Duration, bool) {
	value := resp.Header.Get("Retry-After")
	n, err := strconv.ParseUint(value, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) { // then n is the largest integer
		return time.Duration(min(n, uint64(maxWait/time.Second))) * time.Second, true
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	from, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		from = now()
	}
	return min(max(until.Sub(from), 0), maxWait), true
}

// untrusted reports whether the server's identity is wrong, which another try does
// not change.
func untrusted(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}
