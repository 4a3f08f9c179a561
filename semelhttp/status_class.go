package semelhttp

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/semelgo/semel/store"
)

// statusClass is what a handler's response says about its operation.
type statusClass uint8

const (
	// classSuccess: the operation took place.
	classSuccess statusClass = iota
	// classRefused: a refusal that is the operation's final answer.
	classRefused
	// classTemporary: a refusal for now, or for this caller. Nothing happened and
	// nothing is stored; the key may be retried.
	classTemporary
	// classError: something failed, and the response does not say whether the
	// operation took place.
	classError
)

// temporaryStatuses are the statuses of classTemporary.
func temporaryStatuses() []int {
	return []int{
		http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusLocked, http.StatusTooEarly, http.StatusTooManyRequests,
	}
}

// class returns the class of the handler's response. Without a transaction, the
// application's StatusVerdict may know better than the table what a status proves.
func (x *exchange) class() statusClass {
	status := x.own.status
	if x.sealed || x.s.StatusVerdict == nil || status < http.StatusBadRequest {
		return classOf(status)
	}
	switch x.s.StatusVerdict(status) {
	case store.NotCommitted:
		return classTemporary
	case store.Committed:
		return classRefused
	case store.Unknown:
	}
	return classError
}

func classOf(status int) statusClass {
	switch {
	case status < http.StatusBadRequest:
		return classSuccess
	case slices.Contains(temporaryStatuses(), status):
		return classTemporary
	case status >= http.StatusInternalServerError:
		return classError
	default:
		return classRefused
	}
}

// StatusError is the error that the engine gets for a handler whose response is not the
// operation's outcome. Behind [Middleware] a status from 500 up leaves the effect
// unknown. If an operation's handler responds with some of them only if nothing happened,
// its Classify says so:
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

// Unwrap returns context.Canceled, because the handler ended the attempt. The
// status is therefore not stored as a failure, even with OnError Keep.
func (e *StatusError) Unwrap() error { return context.Canceled }
