package conform_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/semelgo/semel/cmd/semel/internal/conform"
)

// says returns the server's own profile.
func (s *fakeServer) says() conform.Profile {
	p := conform.DefaultProfile()
	p.Name, p.Key.Forms, p.Key.Same, p.Key.Time = "strict", []string{"string"}, false, "uuidv7"
	p.AfterRetention, p.Reauthorizes, p.ReplayMaxBytes = "expired", true, 64<<10
	p.Suite.Offers = []string{"barrier", "clock", "crash", "store", "permit"}
	if s.flaws[speaksStripe] {
		p.Name, p.Key.Forms, p.Key.Time, p.AfterRetention = "stripe", []string{"raw"}, "", "run"
		p.OtherOperation, p.ServerErrors, p.Errors = "mismatch", "stored", "stripe"
		p.Statuses["key_reused"] = http.StatusBadRequest
	}
	if s.flaws[hasOwnEndpoint] {
		p.Suite = conform.Suite{
			Endpoint: &conform.Endpoint{
				URL: "/ops", Body: `{"op":"{{op}}","n":{{n}}}`,
				Counter: conform.Counter{URL: "/effects/{{op}}", Pointer: "/count"},
			},
			Principals: []map[string]string{{"Authorization": "Bearer a"}, {"Authorization": "Bearer b"}},
		}
	}
	if s.flaws[declaresWait] {
		p.InProgress = "wait"
	}
	if s.flaws[expiresKeys] {
		p.Key.Time, p.AfterRetention = "uuidv7", "expired"
	}
	if s.flaws[declaresNoMarker] {
		p.ReplayHeader = ""
	}
	if s.flaws[storesNoRefusal] {
		p.NeverStored = append(p.NeverStored, http.StatusPaymentRequired, http.StatusConflict, http.StatusUnprocessableEntity)
	}
	if s.flaws[keepsAnHour] {
		p.Retention = 3600
	}
	return p
}

func (s *fakeServer) publish(w http.ResponseWriter, r *http.Request) {
	published := s.profile
	switch {
	case s.flaws[publishesNothing]:
		http.NotFound(w, r)
		return
	case s.flaws[hasPagesForAll]:
		_, _ = io.WriteString(w, "<!doctype html><title>An application</title>")
		return
	}
	if s.flaws[publishesOtherwise] {
		published.Retention *= 2
	}
	report(w, published)
}

// refuse answers with the refusal for code.
func (s *fakeServer) refuse(w http.ResponseWriter, code string) {
	status := s.profile.Statuses[strings.TrimPrefix(code, atOtherEndpoint)]
	if s.flaws[mismatchIs409] && code == "key_reused" {
		status = http.StatusConflict
	}
	if !s.flaws[noRetryAfter] && (code == "in_progress" || code == "unavailable") {
		w.Header().Set("Retry-After", "1")
	}
	switch {
	case s.flaws[plainErrors]:
		http.Error(w, code, status)
	case s.flaws[speaksStripe]:
		s.refuseAsStripe(w, status, code)
	default:
		problem(w, status, code)
	}
}

func problem(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"type":"/problems/`+code+`","title":"`+code+`","code":"`+code+`","status":`+strconv.Itoa(status)+`}`)
}

// atOtherEndpoint is the prefix of the code for a key that was used at another
// endpoint.
const atOtherEndpoint = "elsewhere: "

// refuseAsStripe answers like Stripe's first API.
func (s *fakeServer) refuseAsStripe(w http.ResponseWriter, status int, code string) {
	kind, about := "invalid_request_error", code
	switch code {
	case "key_reused":
		kind, code, about = "idempotency_error", "", "not the same parameters"
	case atOtherEndpoint + "key_reused":
		kind, code, about = "idempotency_error", "", "not the same endpoint"
	case "in_progress":
		code = "idempotency_key_in_use"
	}
	retry := code == "idempotency_key_in_use" || code == "unavailable" || s.flaws[saysRetry] && kind == "idempotency_error"
	w.Header().Set("Stripe-Should-Retry", strconv.FormatBool(retry))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"error":{"type":"`+kind+`","code":"`+code+`","message":"`+about+`"}}`)
}

// reused returns the code for a key that was used for another request.
func (s *fakeServer) reused(first, now string) string {
	if s.flaws[speaksStripe] && endpointOf(first) != endpointOf(now) {
		return atOtherEndpoint + "key_reused"
	}
	return "key_reused"
}

// endpointOf returns the method and the target of a fingerprint.
func endpointOf(fingerprint string) string {
	method, rest, _ := strings.Cut(fingerprint, "\n")
	target, _, _ := strings.Cut(rest, "\n")
	return method + " " + target
}
