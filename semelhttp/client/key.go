package client

import (
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp/internal/wire"
)

// keyLine returns the key's header line of all tries of r; empty: none.
func (t *Transport) keyLine(r *http.Request) (string, error) {
	child, err := childKey(r)
	if err != nil {
		return "", err
	}
	lines := r.Header.Values(t.Header)
	switch {
	case t.otherSpelling(r.Header):
		return "", t.keyError("must be spelt so in Request.Header, as Header.Set does")
	case len(lines) > 0:
		return t.callerKey(lines, child)
	case child != "":
		return t.written(child)
	case r.Method != http.MethodPost && r.Method != http.MethodPatch:
		return "", nil
	case r.Response != nil && r.Response.Request != nil: // a redirect, which keeps the key
		if line := r.Response.Request.Header.Get(t.Header); line != "" {
			return line, nil
		}
	}
	key, err := t.newKey(r)
	if err != nil {
		return "", err
	}
	return t.written(key)
}

// keyError is an error about the key's header.
func (t *Transport) keyError(reason string) error {
	return &semel.FieldError{Field: t.Header, Reason: reason}
}

// childKey returns the key that WithChildKey has named for r, or an empty one. A safe
// request has none, because repeating it does no harm.
func childKey(r *http.Request) (string, error) {
	name, named := r.Context().Value(childName{}).(string)
	if !named || wire.Safe(r.Method) {
		return "", nil
	}
	return semel.ChildKey(r.Context(), name)
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
func (t *Transport) callerKey(lines []string, child string) (string, error) {
	if len(lines) > 1 || lines[0] == "" {
		return "", t.keyError("must be one header line with one key")
	}
	if key, reason := wire.ParseKey(lines[0]); child != "" && (reason != "" || key != child) {
		return "", t.keyError("is set, and WithChildKey names another key; leave one of them out")
	}
	return lines[0], nil
}

func (t *Transport) newKey(r *http.Request) (string, error) {
	_, outside := semel.ChildKey(r.Context(), "")
	switch {
	case t.KeyFunc != nil:
		return t.KeyFunc(r)
	case outside == nil: // the request belongs to an operation
		return "", t.keyError("is not set, and each attempt of the operation would send another; name the call with client.WithChildKey")
	case t.RequireKey:
		return "", t.keyError("is not set, and Transport.RequireKey allows no random key; set the header, or name the call with client.WithChildKey")
	}
	id, err := uuid.NewV7()
	return id.String(), err
}

// written returns key as a header line.
func (t *Transport) written(key string) (string, error) {
	if reason := wire.KeyReason(key); reason != "" {
		return "", &semel.FieldError{Field: "Key", Reason: reason}
	}
	if t.RawKeys {
		return key, nil
	}
	return wire.FormatKey(key)
}
