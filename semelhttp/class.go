package semelhttp

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/semelgo/semel/store"
)

// class is what a handler's response says about its operation.
type class uint8

const (
	// classDone: it happened, or the handler has nothing against it.
	classDone class = iota
	// classRefused: a definite no, which is the operation's answer for good.
	classRefused
	// classPassing: no for now, or not for this caller. Nothing happened, nothing
	// is stored, and the key may try again.
	classPassing
	// classBroken: something went wrong, and the response does not say how far the
	// operation got.
	classBroken
)

// passing are the statuses of classPassing.
func passing() []int {
	return []int{
		http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusLocked, http.StatusTooEarly, http.StatusTooManyRequests,
	}
}

// class is what the handler's response says. Without a transaction of the record's own
// database the application may know better than the table what a status proves.
func (x *exchange) class() class {
	status := x.own.status
	if x.sealed || x.s.StatusVerdict == nil || status < http.StatusBadRequest {
		return classOf(status)
	}
	switch x.s.StatusVerdict(status) {
	case store.NotCommitted:
		return classPassing
	case store.Committed:
		return classRefused
	case store.Unknown:
	}
	return classBroken
}

func classOf(status int) class {
	switch {
	case status < http.StatusBadRequest:
		return classDone
	case slices.Contains(passing(), status):
		return classPassing
	case status >= http.StatusInternalServerError:
		return classBroken
	default:
		return classRefused
	}
}

// StatusError is what the engine is told of a handler whose response is not the
// operation's outcome. Behind [Middleware] a status from 500 up leaves the
// effect unknown; an operation whose handler answers some of them only when
// nothing happened says so in its Classify:
//
//	Classify: func(err error) store.Verdict {
//		if s, ok := errors.AsType[*semelhttp.StatusError](err); ok && s.Status == http.StatusServiceUnavailable {
//			return store.NotCommitted
//		}
//		return store.Unknown
//	}
type StatusError struct {
	Status int
}

// Error returns the status and its text.
func (e *StatusError) Error() string {
	return fmt.Sprintf("semelhttp: the handler answered %d %s", e.Status, http.StatusText(e.Status))
}

// Unwrap returns context.Canceled: the handler called the attempt off. So its
// status is no failure to keep, even where failures are kept.
func (e *StatusError) Unwrap() error { return context.Canceled }
