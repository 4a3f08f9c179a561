package semelhttp

import "net/http"

// The codes of the problems this package answers with. They are stable.
const (
	codeKeyMissing        = "key_missing"
	codeKeyMalformed      = "key_malformed"
	codeKeyReused         = "key_reused"
	codeKeyExpired        = "key_expired"
	codeInProgress        = "in_progress"
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

// page is the documentation of one problem type.
type page struct {
	Code   string
	Status int // the usual one
	Title  string
	Means  string // what is known about the operation
	Do     string // what the client should do
}

// catalogue lists every problem this package can answer with.
func catalogue() []page {
	return []page{
		{
			codeKeyMissing, http.StatusBadRequest, "An idempotency key is required",
			"The request has no " + HeaderKey + " header, and this operation does not run without one. Nothing was run.",
			"Draw a new random key, a UUID for instance, keep it with the request, and send both again.",
		},
		{
			codeKeyMalformed, http.StatusBadRequest, "The idempotency key is malformed",
			"The " + HeaderKey + " header is not one line with one key of 1 to 255 visible ASCII characters, plain or quoted. Nothing was run.",
			"Correct the header. The key itself is still unused.",
		},
		{
			codeKeyReused, http.StatusUnprocessableEntity, "The idempotency key was used for another request",
			"The key stands for a request with another method, target, media type or body. This one was not run, and nothing is said about the other.",
			"If this is a new intent, use a new key. If it is meant to be a repeat, send the first request again exactly as it was.",
		},
		{
			codeKeyExpired, http.StatusGone, "The idempotency key is too old",
			"The time in the key is past the time results are kept, or lies in the future. Nothing was run now; whether something was run long ago is no longer known.",
			"Find out whether the operation was done before asking for it with a new key. Check the clock.",
		},
		{
			codeInProgress, http.StatusConflict, "The operation is in progress",
			"Another request with this key is being run.",
			"Wait as long as Retry-After says, then send the same request with the same key.",
		},
		{
			codeOutcomeUnknown, http.StatusConflict, "It is not known whether the operation happened",
			"The operation was run and may or may not have happened. With status 503 this very request ran it; with 409 an earlier one did.",
			"After 503, wait as long as Retry-After says and send the same request with the same key: the server finishes the operation, or answers 409 until an operator has settled it. After 409, a retry helps only once that is done. Never use a new key: the operation could happen twice.",
		},
		{
			codeResultUnavailable, http.StatusConflict, "The operation succeeded, its response cannot be given again",
			"The operation with this key succeeded. Its response was streamed, too large to keep, said that it must not be stored, or is not in a form that can be answered with.",
			"Do not repeat the operation. Read what it made by other means.",
		},
		{
			codeUnavailable, http.StatusServiceUnavailable, "The service cannot take the request now",
			"The records of operations cannot be reached, another version of the service has made the record of this key, or the server is stopping. Nothing was run.",
			"Wait as long as Retry-After says, then send the same request with the same key.",
		},
		{
			codeUnauthenticated, http.StatusUnauthorized, "It is not known who is asking",
			"Keys belong to whoever sends them, and the request does not say who that is. Nothing was run.",
			"Authenticate, and send the same request with the same key.",
		},
		{
			codeForbidden, http.StatusForbidden, "The answer may not be given to who is asking",
			"The operation with this key has an answer, and who is asking may no longer have it. Nothing was run now.",
			"Ask for the right to see what the operation made. The answer is kept, and the key still stands for it.",
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
			codeBodyInvalid, http.StatusBadRequest, "The request is not understood",
			"The request cannot be read as what this operation takes. Nothing was run.",
			"Correct the request. The key is still unused.",
		},
		{
			codeFailed, http.StatusUnprocessableEntity, "The operation failed",
			"The operation failed, nothing of it happened, and that is final for this key. Repeats get the same answer.",
			"Correct what the answer names, and use a new key.",
		},
		{
			codeInternal, http.StatusInternalServerError, "Something is wrong on the server",
			"The server could not carry out the request, or is set up wrongly.",
			"Send the same request with the same key later.",
		},
	}
}

func pageOf(code string) (page, bool) {
	for _, p := range catalogue() {
		if p.Code == code {
			return p, true
		}
	}
	return page{}, false
}
