package semelhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/store"
)

var (
	errNothingWritten = errors.New("semelhttp: the function given to InTx has written no response; write it there, status included, because it commits with the transaction")
	// errRolledBack is context.Canceled too, so that it is never stored.
	errRolledBack = fmt.Errorf("semelhttp: the handler reports success after its transaction was rolled back: %w", context.Canceled)
)

// run is one run of the handler. A conflict in the database causes another run, which
// shares nothing with this one.
type run struct {
	capture

	body bodyReader

	// The lock of capture guards the following fields until the run is over.
	failed    bool // the response is stored as a failure
	committed bool // InTx has taken the response as the outcome
	undone    bool // InTx has rolled back, and has not committed since
}

// handle runs next with a copy of r, and returns what its response means for the
// engine: a result, or an error for its status.
func (o *run) handle(ctx context.Context, r *http.Request, next http.Handler) (any, error) {
	r = setBody(r.Clone(ctx), &o.body) // the handler may change it
	defer func() {
		o.end()
		if r.MultipartForm != nil { // the server removes only the files of its own request
			_ = r.MultipartForm.RemoveAll()
		}
	}()
	next.ServeHTTP(&o.capture, r)
	late := o.end()
	switch {
	case o.committed && late > 0:
		return nil, ErrResponseClosed // the engine informs its Observer
	case o.committed:
		return nil, nil // InTx has informed the engine
	}
	return o.outcome()
}

// Encode returns to the engine, inside the transaction of InTx, what the handler
// has written. The handler's later writes are refused.
func (o *run) Encode(any) (any, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over.Load() { // a goroutine that the handler left behind ends its transaction
		return nil, ErrResponseClosed
	}
	if o.own.Status == 0 {
		return nil, errNothingWritten
	}
	o.closed = true
	o.committed, o.undone = true, false
	return o.result(o.stored()), nil
}

// Undone is called if the transaction did not commit: what was written for it is
// dropped, and the handler responds again, or runs again and reads its request
// again. After the handler has returned, its response stays.
func (o *run) Undone() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over.Load() {
		return
	}
	o.committed, o.undone = false, true
	o.reset()
	_, _ = o.body.Seek(0, io.SeekStart) // cannot fail
}

// Claims reports whether the handler's response says that the operation took place.
// It is called after the handler has returned.
func (o *run) Claims() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.own.Status < http.StatusBadRequest
}

// verdict returns what the handler's response says about the operation.
func (o *run) verdict() store.Verdict { return o.settings.verdict(o.own.Status) }

// verdict returns what a status says about the operation: NotCommitted is a refusal for
// now, or for this caller, after which the key may be retried; Committed is the
// operation's answer. Without a transaction, the application's StatusVerdict may know better
// than the table what a status proves.
func (s *settings) verdict(status int) store.Verdict {
	switch {
	case status < http.StatusBadRequest:
		return store.Committed
	case s.StatusVerdict != nil && !s.atomic:
		return s.StatusVerdict(status)
	case slices.Contains([]int{
		http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusLocked, http.StatusTooEarly, http.StatusTooManyRequests,
	}, status):
		return store.NotCommitted
	case status >= http.StatusInternalServerError:
		return store.Unknown
	case s.form:
		return store.NotCommitted // the form is shown again, and is sent again with its token
	default:
		return store.Committed
	}
}

// outcome returns what the response says about the operation. A response from 500 up
// says nothing, unless the profile is Stripe and either a rollback proves that nothing
// happened, or the response can be stored: a tombstone would say that the operation
// succeeded.
func (o *run) outcome() (any, error) {
	verdict, status, rolledBack := o.verdict(), o.own.Status, o.atomic || o.undone
	refused := verdict == store.Committed && status >= http.StatusBadRequest
	unknown := verdict != store.Committed && verdict != store.NotCommitted
	switch {
	case o.undone && status < http.StatusBadRequest:
		return nil, errRolledBack
	case verdict == store.NotCommitted:
		return nil, semel.NotCommitted(&StatusError{Status: status})
	}
	raw, unstored := o.stored()
	switch {
	case refused && o.atomic, unknown && o.Profile == Stripe && rolledBack:
		o.failed = true
		return nil, semel.Final(failureOf(status, raw))
	case unknown && (o.Profile != Stripe || unstored != ""):
		return nil, &StatusError{Status: status}
	default:
		return o.result(raw, unstored), nil
	}
}

// result returns the response, as stored returns it, as a result, or as a tombstone. A
// tombstone says that the operation succeeded, so for a refusal the status is stored instead.
func (o *run) result(raw semel.Raw, unstored string) any {
	switch {
	case unstored == "":
		return raw
	case o.own.Status >= http.StatusBadRequest && o.verdict() == store.Committed:
		r := o.responseTo(refusal(failureOf(o.own.Status, nil)))
		r.endpoint = o.own.endpoint
		return r.encode(keptNames(nil, r.Header, o.ReplayHeaders))
	default:
		return adapter.Tombstone(unstored)
	}
}

// stored returns the response in the stored form, or why it cannot be replayed.
func (o *run) stored() (raw semel.Raw, unstored string) {
	switch {
	case o.passing, int64(len(o.own.Body)) > o.MaxResponse, o.own.Status < http.StatusOK:
		return nil, "the response was streamed or is larger than is kept"
	case !o.KeepNoStore && noStore(o.own.Header):
		return nil, "the response says no-store"
	default:
		return o.own.encode(keptNames(make([]string, 0, 8), o.own.Header, o.ReplayHeaders)), ""
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
