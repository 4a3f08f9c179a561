package semelhttp

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/semelgo/semel"
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
	status := x.own.Status
	if x.atomic || x.StatusVerdict == nil || status < http.StatusBadRequest {
		return classOf(status)
	}
	switch x.StatusVerdict(status) {
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

// outcome returns what the response says about the operation.
func (x *exchange) outcome() (any, error) {
	own, storable := x.run.capture.result()
	x.own = own
	switch c := x.class(); {
	case c == classError:
		return x.serverErrorOutcome(storable)
	case c == classTemporary:
		return nil, semel.NotCommitted(&StatusError{Status: own.Status})
	case c == classRefused && x.atomic:
		return nil, semel.Final(x.failure(storable))
	default:
		return x.result(storable), nil
	}
}

// serverErrorOutcome returns what a response from 500 up says about the operation:
// nothing, unless the profile takes it for an answer. A response that cannot be
// stored is no answer, because its tombstone would say that the operation
// succeeded.
func (x *exchange) serverErrorOutcome(storable bool) (any, error) {
	switch {
	case x.broken && (x.atomic || x.undone): // the rollback proves that nothing happened
		return nil, semel.Final(x.failure(storable))
	case x.broken && x.whyNotStored(storable) == "":
		return x.result(storable), nil
	default:
		return nil, &StatusError{Status: x.own.Status}
	}
}

// whyNotStored returns why the response cannot be replayed, or an empty text.
func (x *exchange) whyNotStored(storable bool) string {
	switch {
	case !storable:
		return "the response was streamed or is larger than is kept"
	case !x.KeepNoStore && noStore(x.own.Header):
		return "the response says no-store"
	default:
		return ""
	}
}

// result returns the response as a result, or as a tombstone. A tombstone says
// that the operation succeeded, so for a refusal the status is stored instead.
func (x *exchange) result(storable bool) any {
	why := x.whyNotStored(storable)
	switch {
	case why == "":
		return x.own.encode(x.keep.names(make([]string, 0, 8), x.own.Header), x.endpoint())
	case x.class() == classRefused:
		p := x.problemResponse(refusalOf(x.own.Status))
		return p.encode(x.keep.names(nil, p.Header), x.endpoint())
	default:
		return semel.Tombstone(why)
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
