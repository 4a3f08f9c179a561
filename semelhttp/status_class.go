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
	// classError: something failed, and the response does not say whether the
	// operation took place.
	classError statusClass = iota
	// classSuccess: the operation took place.
	classSuccess
	// classRefused: a refusal that is the operation's final answer.
	classRefused
	// classTemporary: a refusal for now, or for this caller. Nothing happened and
	// nothing is stored; the key may be retried.
	classTemporary
)

// temporaryStatuses are the statuses of classTemporary.
func temporaryStatuses() []int {
	return []int{
		http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusLocked, http.StatusTooEarly, http.StatusTooManyRequests,
	}
}

// classOf returns the class of a response. A verdict about statuses from 400 up, if
// there is one, replaces the table.
func classOf(status int, verdict func(status int) store.Verdict) statusClass {
	switch {
	case status < http.StatusBadRequest:
		return classSuccess
	case verdict != nil:
		known := map[store.Verdict]statusClass{store.NotCommitted: classTemporary, store.Committed: classRefused}
		return known[verdict(status)] // else classError
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
//		var s *semelhttp.StatusError
//		if errors.As(err, &s) && s.Status == http.StatusServiceUnavailable {
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
