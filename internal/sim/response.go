package sim

import (
	"errors"
	"fmt"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/onetime"
	"github.com/semelgo/semel/store"
)

// responseKind is the kind of a response to a caller.
type responseKind uint8

const (
	responseNone responseKind = iota
	responseOK
	responseReplay
	responseFailed
	responseReleased // did not happen; the key may try again
	responseUnknown
	responseInDoubt
	responseInProgress
	responseMismatch
	responseUnavailable
	responseQueued
	responseTokenUnknown
	responseTokenExpired
	responseOther
	responseKinds
)

func (t responseKind) String() string {
	return [responseKinds]string{
		"nothing", "ok", "ok, replayed", "failed", "did not happen", "unknown", "in doubt", "in progress",
		"mismatch", "unavailable", "that it waits", "that the token is unknown", "that the token is expired", "something else",
	}[t]
}

// response is the response that a caller of the engine receives.
type response struct {
	kind  responseKind
	value string
	of    request
	ask   int // number of the call that it answers
	// attempt belongs to a response "did not happen"; epoch also to an enqueued
	// call.
	attempt uint32
	epoch   int
}

func toResponse(value string, replayed bool, err error) response {
	var attempt *semel.AttemptError
	var failure *semel.Failure
	switch {
	case err == nil && replayed:
		return response{kind: responseReplay, value: value}
	case err == nil:
		return response{kind: responseOK, value: value}
	case errors.As(err, &attempt) && attempt.Verdict == store.Unknown, errors.Is(err, semel.ErrOutcomeUnknown):
		return response{kind: responseUnknown}
	case errors.As(err, &attempt):
		return response{kind: responseReleased}
	case errors.As(err, &failure):
		return response{kind: responseFailed, value: failure.Message}
	case errors.Is(err, semel.ErrInDoubt):
		return response{kind: responseInDoubt}
	case errors.Is(err, semel.ErrInProgress):
		return response{kind: responseInProgress}
	case errors.Is(err, semel.ErrMismatch):
		return response{kind: responseMismatch}
	case errors.Is(err, onetime.ErrUnknown):
		return response{kind: responseTokenUnknown}
	case errors.Is(err, onetime.ErrExpired):
		return response{kind: responseTokenExpired}
	case errors.Is(err, semel.ErrUnavailable):
		return response{kind: responseUnavailable}
	default:
		return response{kind: responseOther, value: err.Error()}
	}
}

func (t response) ok() bool { return t.kind == responseOK || t.kind == responseReplay }

func (t response) String() string {
	if t.value == "" {
		return t.kind.String()
	}
	return fmt.Sprintf("%v: %q", t.kind, t.value)
}

func (t response) digest(d digest) digest {
	d = d.add(uint64(t.of.row)).text(t.of.fp)
	return d.add(uint64(t.kind)).text(t.value).add(uint64(t.ask)).add(uint64(t.attempt)).add(uint64(t.epoch))
}
