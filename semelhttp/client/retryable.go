package client

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/semelgo/semel/semelhttp/internal/wire"
)

// isTemporary reports whether a response with that status can be retried in any case.
func isTemporary(status int) bool {
	return slices.Contains([]int{
		http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}, status)
}

// needsInvitation reports whether a response with that status is final unless it
// says otherwise: most APIs answer 409 if a name is taken or a version is old.
func needsInvitation(status int) bool {
	return status == http.StatusConflict || status == http.StatusLocked
}

const headerShouldRetry = "Stripe-Should-Retry"

// shouldRetry reports whether to retry after resp, which was read; keyed means that the
// request has a key.
func shouldRetry(resp *http.Response, keyed bool) bool {
	status, told := resp.StatusCode, resp.Header.Get(headerShouldRetry)
	switch {
	case status < http.StatusBadRequest, resp.Header.Get(wire.HeaderReplayed) == "true", told == "false":
		return false
	case needsInvitation(status):
		return keyed && invitesRetry(resp)
	}
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity:
		return false // the request is wrong, or its sender has no right to it, whatever else the response says
	default:
		return isTemporary(status) || keyed && told == "true"
	}
}

// invitesRetry reports whether resp itself says that a later try may have another
// response: by Retry-After or Stripe-Should-Retry, by the code of this package's
// problem, or by the code in Stripe's error.
func invitesRetry(resp *http.Response) bool {
	if resp.Header.Get("Retry-After") != "" || resp.Header.Get(headerShouldRetry) == "true" {
		return true
	}
	body, ok := resp.Body.(bufferedBody)
	if !ok {
		return false
	}
	defer func() { _, _ = body.Seek(0, io.SeekStart) }() // never fails
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var p struct {
		Code  string
		Error struct{ Code string }
	}
	_ = json.NewDecoder(body).Decode(&p) // members of another type stay empty
	return kind == "application/problem+json" && p.Code == wire.CodeInProgress ||
		kind == "application/json" && p.Error.Code == wire.StripeKeyInUse
}

// maxWait is longer than any wait, and can be added to without overflow.
const maxWait = time.Duration(math.MaxInt64 / 2)

// retryAfter returns how long resp says to wait, if there is one and it says so. A date is compared with the
// server's Date, so that only the server's clock matters.
func retryAfter(resp *http.Response) (time.Duration, bool) {
	if resp == nil {
		return 0, false
	}
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
