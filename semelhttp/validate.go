package semelhttp

import (
	"crypto/rand"
	"errors"
	"net/http"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// validRequest is a request that may run: its scope, its key and, if it was read,
// its body.
type validRequest struct {
	scope  semel.Scope
	line   string          // header line with the key, if the key is in a header
	key    string          // empty: the request has no key and may run without one
	cached *cachedResponse // a cached response to a request with this key
	body   []byte
	read   bool // body was read
}

// validate checks what can be checked without the store. It checks the syntax of
// the key first, then asks ScopeFunc for the scope, and reads the body last, if
// read is set or the key is in the body: into the memory of into, which no function
// of the application receives. known, which may be nil, has keys that were checked
// before. validate fills in, which is empty.
func (s *settings) validate(w http.ResponseWriter, r *http.Request, read bool, into []byte, known *responseCache, in *validRequest) (err error) {
	if s.KeyFunc == nil {
		if err = s.headerKey(r, in, known); err != nil {
			return err
		}
	}
	if in.scope, err = s.ScopeFunc(r); err != nil {
		return unauthenticated(err)
	}
	if in.scope.Bytes() == "" {
		return problem(codeUnauthenticated, "") // a user who is not signed in has no name
	}
	if !read && s.KeyFunc == nil {
		return nil
	}
	if s.KeyFunc != nil {
		into = nil
	}
	if in.body, err = s.readBody(w, r, into); err != nil {
		return err
	}
	in.read = true
	if s.KeyFunc != nil {
		in.key, err = s.fieldKey(r, in)
		in.cached = known.at(in.key)
	}
	return err
}

// request returns r as its next reader receives it.
func (in *validRequest) request(r *http.Request) *http.Request {
	if !in.read {
		return r
	}
	return withBody(r.Context(), r, in.body)
}

// headerKey reads the key in the header. If that is allowed, there may be none.
func (s *settings) headerKey(r *http.Request, in *validRequest, known *responseCache) error {
	lines := r.Header[HeaderKey]
	if len(lines) == 1 {
		in.line = lines[0]
		if in.cached = known.at(in.line); in.cached != nil {
			in.key = in.cached.key // the same line is the same key
			return nil
		}
	}
	key, present, err := s.keyOf(lines)
	if err == nil && !present && !s.Optional {
		return missing(HeaderKey)
	}
	in.key = key
	return err
}

// fieldKey returns the key that KeyFunc finds. If that is allowed, there may be
// none.
func (s *settings) fieldKey(r *http.Request, in *validRequest) (string, error) {
	key, err := s.KeyFunc(in.request(r), in.body)
	own, spoken := errors.AsType[*Problem](err)
	switch {
	case spoken:
		return "", own
	case err != nil, len(key) > store.MaxKey:
		return "", problem(codeKeyMalformed, "The key in the request is not one of 1 to 255 bytes.")
	case key == "" && !s.Optional:
		return "", missing("")
	default:
		return key, nil
	}
}

// cacheKey returns the key under which the response is cached: the header line,
// else the key.
func (in *validRequest) cacheKey() string {
	if in.line != "" {
		return in.line
	}
	return in.key
}

// keyOrRandom returns the key, or a random one that no other request can have.
func (in *validRequest) keyOrRandom() string {
	if in.key == "" {
		return rand.Text()
	}
	return in.key
}

func missing(field string) error {
	p := problem(codeKeyMissing, "")
	if field == "" {
		p.Detail = "The request carries no key, and this operation does not run without one. Nothing was run."
	}
	p.Field = field
	return p
}

func unauthenticated(err error) error {
	if own, ok := errors.AsType[*Problem](err); ok {
		return own
	}
	return problem(codeUnauthenticated, "")
}

// reauthorize asks Options.Reauthorize whether the sender of r may have a stored
// response.
func (s *settings) reauthorize(r *http.Request, in *validRequest) error {
	if s.Reauthorize == nil {
		return nil
	}
	err := s.Reauthorize(in.request(r))
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[*Problem](err); ok {
		return own
	}
	return problem(codeForbidden, "")
}

// fromRecord reports whether a call returned what is stored: a result, a failure or
// a tombstone.
func fromRecord(replayed bool, err error) bool {
	return replayed || err != nil && semel.Replayed(err)
}
