package semelhttp

import (
	"cmp"
	"net/http"

	"github.com/semelgo/semel/semelhttp/internal/wire"
)

// The messages of these errors for clients of the Stripe profile.
const (
	stripeOtherParameters = "Keys for idempotent requests can only be used with the same parameters they were first used with."
	stripeOtherEndpoint   = "Keys for idempotent requests can only be used for the same endpoint they were first used for."
)

// stripeError is a problem in the format of the Stripe profile.
type stripeError struct {
	Type    string `json:"type"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Param   string `json:"param,omitempty"`
	DocURL  string `json:"doc_url,omitempty"`
}

// inStripe returns a complete problem as it is sent in the format of the Stripe
// profile. Its Stripe-Should-Retry header tells that vendor's clients whether to send
// the same request again, and is set only if that is known.
func inStripe(p Problem) Response {
	r := p.response("application/json", map[string]stripeError{"error": stripeErrorOf(p)})
	switch {
	case p.RetryAfter > 0:
		r.Header.Set("Stripe-Should-Retry", "true")
	case p.Code == codeKeyReused, p.Code == codeOutcomeUnknown, p.Code == codeResultUnavailable:
		r.Header.Set("Stripe-Should-Retry", "false")
	}
	return r
}

func stripeErrorOf(p Problem) stripeError {
	e := stripeError{Type: "invalid_request_error", Code: p.Code, Message: cmp.Or(p.Detail, p.Title), Param: p.Field, DocURL: p.Type}
	switch {
	case p.Code == codeKeyReused:
		e.Type, e.Code, e.Message = "idempotency_error", "", stripeOtherParameters
		if p.Field == fieldEndpoint {
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
