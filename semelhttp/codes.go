package semelhttp

import (
	"net/http"

	"github.com/semelgo/semel/semelhttp/internal/wire"
)

// The codes of this package's problems. They are stable.
const (
	codeKeyMissing        = "key_missing"
	codeKeyMalformed      = "key_malformed"
	codeKeyReused         = "key_reused"
	codeKeyExpired        = "key_expired"
	codeInProgress        = wire.CodeInProgress
	codeOutcomeUnknown    = "outcome_unknown"
	codeResultUnavailable = "result_unavailable"
	codeUnavailable       = "unavailable"
	codeUnauthenticated   = "unauthenticated"
	codeForbidden         = "forbidden"
	codeBodyTooLarge      = "body_too_large"
	codeBodyUnreadable    = "body_unreadable"
	codeBodyInvalid       = "body_invalid"
	codeFailed            = "failed"
	codeInternal          = "internal"
)

// problemPage is the documentation of one problem type.
type problemPage struct {
	Code   string
	Status int // usual status
	Title  string
	Means  string // what is known about the operation
	Do     string // what the client should do
}

// catalogue lists all problems of this package.
func catalogue() []problemPage {
	return []problemPage{
		{
			codeKeyMissing, http.StatusBadRequest, "An idempotency key is required",
			"The request has no " + HeaderKey + " header, and this operation does not run without one. Nothing was run.",
			"Generate a random key, a UUID for instance, store it with the request, and send both again.",
		},
		{
			codeKeyMalformed, http.StatusBadRequest, "The idempotency key is malformed",
			"The " + HeaderKey + " header is not one line with one key of 1 to 255 visible ASCII characters, plain or quoted. Nothing was run.",
			"Correct the header. The key itself is still unused.",
		},
		{
			codeKeyReused, http.StatusUnprocessableEntity, "The idempotency key was used for another request",
			"The key belongs to a request with another method, target, media type or body. This request was not run.",
			"For a new operation use a new key. For a retry send the first request again exactly as it was.",
		},
		{
			codeKeyExpired, http.StatusGone, "The idempotency key is too old",
			"The time in the key is older than the retention of results, or in the future. Nothing was run now; it is no longer known whether the operation was run before.",
			"Find out whether the operation has happened before you request it with a new key. Check the clock.",
		},
		{
			codeInProgress, http.StatusConflict, "The operation is in progress",
			"Another request with this key is running.",
			"Wait as long as Retry-After says, then send the same request with the same key.",
		},
		{
			codeOutcomeUnknown, http.StatusConflict, "It is not known whether the operation happened",
			"The operation was run and may or may not have happened. With status 503 this very request ran it; with 409 an earlier one did.",
			"After 503, wait as long as Retry-After says and send the same request with the same key: the server finishes the operation, or answers 409 until an operator has settled it. After 409, a retry helps only once that is done. Never use a new key: the operation could happen twice.",
		},
		{
			codeResultUnavailable, http.StatusConflict, "The operation succeeded, but its response is not available",
			"The operation with this key succeeded. Its response was streamed, was too large to store, had Cache-Control: no-store, or cannot be decoded.",
			"Do not repeat the operation. Read its result in another way.",
		},
		{
			codeUnavailable, http.StatusServiceUnavailable, "The service cannot take the request now",
			"The records of operations cannot be reached, another version of the service has made the record of this key, or the server is stopping. Nothing was run.",
			"Wait as long as Retry-After says, then send the same request with the same key.",
		},
		{
			codeUnauthenticated, http.StatusUnauthorized, "The caller is not identified",
			"A key belongs to its caller, and the request does not identify the caller. Nothing was run.",
			"Authenticate, and send the same request with the same key.",
		},
		{
			codeForbidden, http.StatusForbidden, "The caller may not have the stored response",
			"The operation with this key has a stored response, which this caller may not have any more. Nothing was run now.",
			"Request the permission to read the result. The response stays stored under the key.",
		},
		{
			codeBodyTooLarge, http.StatusRequestEntityTooLarge, "The request body is too large",
			"The body is larger than this operation takes. Nothing was run.",
			"Send a smaller request. The key is still unused.",
		},
		{
			codeBodyUnreadable, http.StatusBadRequest, "The request body could not be read",
			"The body ended early or was badly framed. Nothing was run.",
			"Send the same request with the same key.",
		},
		{
			codeBodyInvalid, http.StatusBadRequest, "The request is invalid",
			"The request cannot be decoded as the operation's input. Nothing was run.",
			"Correct the request. The key is still unused.",
		},
		{
			codeFailed, http.StatusUnprocessableEntity, "The operation failed",
			"The operation failed and had no effect. This is final for the key: retries get the same response.",
			"Correct the error that the response describes, and use a new key.",
		},
		{
			codeInternal, http.StatusInternalServerError, "Internal error",
			"The server could not execute the request, or is configured wrongly.",
			"Send the same request with the same key later.",
		},
	}
}

func pageOf(code string) (problemPage, bool) {
	for _, p := range catalogue() {
		if p.Code == code {
			return p, true
		}
	}
	return problemPage{}, false
}
