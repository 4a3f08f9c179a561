package semelhttp

import (
	"crypto/rand"
	"errors"
	"net/http"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// admitted is a request that may be run: for whom, and under which key. Where
// its body was read it is in body.
type admitted struct {
	scope semel.Scope
	line  string  // that the key is in as it came, if it came in a header
	key   string  // empty: it has none and may run without
	maybe *repeat // what a request with that key was answered
	body  []byte
	read  bool // the body was
}

// admit lets in what may be asked of the store. It looks at the key's syntax
// first, asks who is asking next, and reads the body last, when read says so or
// the key is to be found in it: to the end of into, which no function of the
// application is given. Known, which may be nil, has keys that were looked at before.
// What it finds out it notes in in, which is empty.
func (s *settings) admit(w http.ResponseWriter, r *http.Request, read bool, into []byte, known *repeats, in *admitted) (err error) {
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
		in.maybe = known.at(in.key)
	}
	return err
}

// of returns the request, which is r, as its next reader gets it.
func (in *admitted) of(r *http.Request) *http.Request {
	if !in.read {
		return r
	}
	return again(r.Context(), r, in.body)
}

// headerKey reads the key in the header, or none where that is allowed.
func (s *settings) headerKey(r *http.Request, in *admitted, known *repeats) error {
	lines := r.Header[HeaderKey]
	if len(lines) == 1 {
		in.line = lines[0]
		if in.maybe = known.at(in.line); in.maybe != nil {
			in.key = in.maybe.key // the same line is the same key
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

// fieldKey is the key that KeyFunc finds, or none where that is allowed.
func (s *settings) fieldKey(r *http.Request, in *admitted) (string, error) {
	key, err := s.KeyFunc(in.of(r), in.body)
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

// found is by what what in was answered is found again.
func (in *admitted) found() string {
	if in.line != "" {
		return in.line
	}
	return in.key
}

// drawn returns in's key, or one that nobody can repeat.
func (in *admitted) drawn() string {
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

// reauthorize asks whether who sent r may have a stored answer.
func (s *settings) reauthorize(r *http.Request, in *admitted) error {
	if s.Reauthorize == nil {
		return nil
	}
	err := s.Reauthorize(in.of(r))
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[*Problem](err); ok {
		return own
	}
	return problem(codeForbidden, "")
}

// fromRecord reports whether what a call came back with is what is stored: a
// result, a failure, or a tombstone.
func fromRecord(replayed bool, err error) bool {
	return replayed || err != nil && semel.Replayed(err)
}
