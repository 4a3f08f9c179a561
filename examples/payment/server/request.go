package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp"
)

const (
	maxBody      = 16 << 10 // bytes
	maxReference = 200      // bytes
	// maxAmount is the largest amount; a larger charge is declined.
	maxAmount = 100_000
)

type (
	merchantKey struct{}
	chargeKey   struct{}
)

// authenticated rejects requests without a user name. The service is a stub, so
// it accepts any name as a merchant.
func authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		merchant, _, _ := r.BasicAuth()
		if merchant == "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="payment"`)
			refuse(w, http.StatusUnauthorized, "unauthenticated", "Authorization", "Send Authorization: Basic with the name of a merchant.")
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), merchantKey{}, merchant)))
	})
}

func merchantIn(ctx context.Context) string {
	merchant, _ := ctx.Value(merchantKey{}).(string)
	return merchant
}

// scopeFunc returns the scope of a request's key: its merchant.
func scopeFunc(r *http.Request) (semel.Scope, error) {
	return semel.ScopeOf(merchantIn(r.Context())), nil
}

// decoded rejects invalid requests before next claims the key, so that the client
// can correct the request and send it with the same key.
func decoded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if errors.As(err, new(*http.MaxBytesError)) {
			refuse(w, http.StatusRequestEntityTooLarge, "body_too_large", "body", "The body is larger than 16 KiB.")
			return
		}
		if err != nil {
			refuse(w, http.StatusBadRequest, "invalid", "body", "The body ended early.")
			return
		}
		n, field, wrong := decode(text)
		if wrong != "" {
			refuse(w, http.StatusBadRequest, "invalid", field, wrong)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), chargeKey{}, n))
		r.Body = io.NopCloser(bytes.NewReader(text))
		next.ServeHTTP(w, r)
	})
}

func chargeIn(ctx context.Context) newCharge {
	n, _ := ctx.Value(chargeKey{}).(newCharge)
	return n
}

var currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)

// decode reads a charge, or returns the wrong field and what is wrong with it.
func decode(text []byte) (n newCharge, field, wrong string) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&n); err != nil {
		return n, "body", "The body must be one JSON object with amount, currency and reference: " + err.Error() + "."
	}
	switch {
	case len(bytes.TrimSpace(text[d.InputOffset():])) > 0:
		return n, "body", "The body has more than one JSON object."
	case n.Amount <= 0:
		return n, "amount", "The amount must be a whole number above zero."
	case !currencyForm.MatchString(n.Currency):
		return n, "currency", "The currency must be three capital letters."
	case strings.TrimSpace(n.Reference) == "" || len(n.Reference) > maxReference:
		return n, "reference", "The reference must have 1 to 200 bytes."
	default:
		return n, "", ""
	}
}

func refuse(w http.ResponseWriter, status int, code, field, detail string) {
	(&semelhttp.Problem{Status: status, Code: code, Field: field, Detail: detail}).Write(w)
}
