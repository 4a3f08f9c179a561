// Package wire has what the server and the client of package semelhttp must spell in
// the same way: headers, keys and the codes of errors that a retry can help against.
package wire

import (
	"net/http"
	"slices"
	"strings"
)

const (
	// HeaderKey is the request header with the caller's key.
	HeaderKey = "Idempotency-Key"
	// HeaderReplayed is "true" on a response that was answered from the record.
	HeaderReplayed = "Idempotent-Replayed"
	// CodeInProgress is the code of the problem while another request with the key runs.
	CodeInProgress = "in_progress"
	// StripeKeyInUse is CodeInProgress in Stripe's error object.
	StripeKeyInUse = "idempotency_key_in_use"
)

// Safe reports whether requests of that method have no effect by definition. The
// zero value is GET, as in a client's request.
func Safe(method string) bool {
	return slices.Contains([]string{"", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, method)
}

// IsToken reports whether s can be the name of a header.
func IsToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}
