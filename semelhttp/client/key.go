package client

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp/internal/wire"
)

// keyLine returns the key's header line of all tries of r; empty: none.
func (t *Transport) keyLine(r *http.Request) (string, error) {
	child, named, err := childKey(r)
	if err != nil {
		return "", err
	}
	lines := r.Header.Values(t.Header)
	switch {
	case t.otherSpelling(r.Header):
		return "", &semel.FieldError{Field: t.Header, Reason: "must be spelt so in Request.Header, as Header.Set does"}
	case len(lines) > 0:
		return t.callerKey(lines, child, named)
	case named:
		return t.written(child)
	case !needsKey(methodOf(r)):
		return "", nil
	case t.redirected(r) != "":
		return t.redirected(r), nil
	}
	key, err := t.newKey(r)
	if err != nil {
		return "", err
	}
	return t.written(key)
}

// childKey returns the key that WithChildKey has named for r. A safe request has
// none, because repeating it does no harm.
func childKey(r *http.Request) (key string, named bool, err error) {
	name, named := r.Context().Value(childName{}).(string)
	if !named || wire.Safe(methodOf(r)) {
		return "", false, nil
	}
	key, err = semel.ChildKey(r.Context(), name)
	return key, true, err
}

// otherSpelling reports whether h has the key under a spelling that is sent as it
// is and that this package does not look up: a second key would be sent beside it.
func (t *Transport) otherSpelling(h http.Header) bool {
	for name := range h {
		if name != t.Header && strings.EqualFold(name, t.Header) {
			return true
		}
	}
	return false
}

// callerKey returns the one line that the caller has set.
func (t *Transport) callerKey(lines []string, child string, named bool) (string, error) {
	if len(lines) > 1 || lines[0] == "" {
		return "", &semel.FieldError{Field: t.Header, Reason: "must be one header line with one key"}
	}
	if key, reason := wire.ParseKey(lines[0]); named && (reason != "" || key != child) {
		return "", &semel.FieldError{
			Field: t.Header, Reason: "is set, and WithChildKey names another key; leave one of them out",
		}
	}
	return lines[0], nil
}

// needsKey reports whether requests of that method need a key if their callers have
// given none.
func needsKey(method string) bool {
	return method == http.MethodPost || method == http.MethodPatch
}

// redirected returns the key's header line of the request whose response redirected
// the client to r, if there was one.
func (t *Transport) redirected(r *http.Request) string {
	if r.Response == nil || r.Response.Request == nil {
		return ""
	}
	return r.Response.Request.Header.Get(t.Header)
}

func (t *Transport) newKey(r *http.Request) (string, error) {
	if t.KeyFunc != nil {
		return t.KeyFunc(r)
	}
	if _, err := semel.ChildKey(r.Context(), ""); err == nil { // the request belongs to an operation
		return "", &semel.FieldError{
			Field:  t.Header,
			Reason: "is not set, and each attempt of the operation would send another; name the call with client.WithChildKey",
		}
	}
	if t.RequireKey {
		return "", &semel.FieldError{
			Field:  t.Header,
			Reason: "is not set, and Transport.RequireKey allows no random key; set the header, or name the call with client.WithChildKey",
		}
	}
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("draw key: %w", err)
	}
	return id.String(), nil
}

// written returns key as a header line.
func (t *Transport) written(key string) (string, error) {
	if reason := wire.KeyReason(key); reason != "" {
		return "", &semel.FieldError{Field: "Key", Reason: reason}
	}
	if t.RawKeys {
		return key, nil
	}
	line, err := wire.FormatKey(key)
	if err != nil {
		return "", fmt.Errorf("write key: %w", err)
	}
	return line, nil
}
