package semelhttp

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/semelgo/semel/semelhttp/internal/wire"
)

// The names of these errors for clients of the Stripe profile.
const (
	stripeIdempotencyError = "idempotency_error"
	stripeOtherParameters  = "Keys for idempotent requests can only be used with the same parameters they were first used with."
	stripeOtherEndpoint    = "Keys for idempotent requests can only be used for the same endpoint they were first used for."
)

// stripeError is a problem in the format of the Stripe profile.
type stripeError struct {
	Type    string `json:"type"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Param   string `json:"param,omitempty"`
	DocURL  string `json:"doc_url,omitempty"`
}

// writeStripe sends p in the error format of the Stripe profile. Its
// Stripe-Should-Retry header tells that vendor's clients whether to send the same
// request again, and is set only if that is known.
func writeStripe(w http.ResponseWriter, p *Problem) {
	full := p.complete()
	text, err := json.Marshal(map[string]stripeError{"error": stripeErrorOf(full)})
	if err != nil { // not reachable: the fields are strings
		text = []byte("{}")
	}
	h := w.Header()
	switch {
	case p.RetryAfter > 0:
		h.Set("Stripe-Should-Retry", strconv.FormatBool(true))
	case full.Code == codeKeyReused, full.Code == codeOutcomeUnknown, full.Code == codeResultUnavailable:
		h.Set("Stripe-Should-Retry", strconv.FormatBool(false))
	}
	full.send(w, "application/json", text)
}

func stripeErrorOf(p Problem) stripeError {
	e := stripeError{Type: "invalid_request_error", Code: p.Code, Message: p.Detail, Param: p.Field, DocURL: p.Type}
	if e.Message == "" {
		e.Message = p.Title
	}
	switch {
	case p.Code == codeKeyReused:
		e.Type, e.Code = stripeIdempotencyError, ""
		if p.Field != fieldEndpoint {
			e.Message = stripeOtherParameters
		} else {
			e.Message, e.Param = stripeOtherEndpoint, ""
		}
	case p.Code == codeInProgress:
		e.Code = wire.StripeKeyInUse
	case p.Status >= http.StatusInternalServerError:
		e.Type = "api_error"
	}
	return e
}

// fieldEndpoint marks a key_reused whose key was used at another endpoint.
const fieldEndpoint = "endpoint"
