package semelhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/semelgo/semel"
)

// JSONFields returns a fingerprint for semel.OperationOptions.Fingerprints that
// compares the values of JSON bodies and not their text: the order of members,
// insignificant whitespace, escapes in strings and the spelling of a number (1, 1.0;
// 1e21, 1000000000000000000000) do not matter. Method, path, query, media type and
// Options.FingerprintHeaders are compared as well.
//
// Each field is the name of a member of the body, or, if it begins with a slash, a
// JSON Pointer (RFC 6901) to a part of it; an absent member differs from null. Names
// are case-sensitive, and encoding/json's are not: a body that has the name in another
// case is 400 body_invalid. The rest of the body is not compared: a retry that differs
// only there gets the first response. No field: the whole body is compared.
//
// The body is compared in the form of RFC 8785, except that an integer that double
// precision cannot tell from another keeps all its digits. Two different numbers are
// never the same: a compared number that is no integer and that double precision cannot
// tell from another, such as 0.1000000000000000000001, is 400 body_invalid. So is a body
// that is not JSON, that has a member twice, that is no object although fields are
// chosen, or that is compressed: it is read as it was sent.
//
// The fingerprints of the same fields never change, across restarts and versions of this
// package, so records can be compared as long as they are kept. To choose other fields
// later, append another JSONFields to the list.
func JSONFields(fields ...string) func(Request) any {
	fields = slices.Clone(fields)
	return func(r Request) any {
		body, err := chosen(r.Body, fields)
		if err != nil {
			return fingerprintError{err}
		}
		text, err := json.Marshal(fingerprinted{r.Method, r.Path, r.Query, r.MediaType, body, r.Headers})
		if err != nil { // not reachable: strings and JSON
			return fingerprintError{err}
		}
		whole := jsontext.Value(text)
		if err := canonical(&whole); err != nil { // not reachable: it was just encoded
			return fingerprintError{err}
		}
		return semel.Raw(whole)
	}
}

// fingerprinted are the parts that two requests must have in common to be the same.
type fingerprinted struct {
	Method    string              `json:"method"`
	Path      string              `json:"path"`
	Query     string              `json:"query"`
	MediaType string              `json:"media_type"`
	Body      json.RawMessage     `json:"body"`
	Headers   map[string][]string `json:"headers,omitempty"`
}

// fingerprintError is the fingerprint of a request that has none: the engine refuses its
// call before it uses the store.
type fingerprintError struct{ err error }

// MarshalJSON returns the error.
func (u fingerprintError) MarshalJSON() ([]byte, error) { return nil, u.err }

var errNoObject = errors.New("the body is not a JSON object")

// chosen returns the chosen fields of a body, or the whole body.
func chosen(body []byte, fields []string) (json.RawMessage, error) {
	if len(fields) == 0 {
		whole, err := valueIn(body)
		if err != nil {
			return nil, err
		}
		return numbered(whole)
	}
	whole, err := objectIn(body)
	if err != nil {
		return nil, err
	}
	picked := make(map[string]json.RawMessage)
	for _, field := range fields {
		value, ok, err := member(whole, field)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if picked[field], err = numbered(value); err != nil {
			return nil, err
		}
	}
	return json.Marshal(picked)
}

// valueIn returns the JSON value of a body. A member that occurs twice is an error,
// and so is invalid UTF-8.
func valueIn(body []byte) (json.RawMessage, error) {
	whole := jsontext.Value(bytes.Clone(body))
	err := whole.Compact(jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false))
	return json.RawMessage(whole), err
}

// objectIn returns the JSON object of a body.
func objectIn(body []byte) (json.RawMessage, error) {
	whole, err := valueIn(body)
	if err == nil && jsontext.Value(whole).Kind() != '{' {
		err = errNoObject
	}
	return whole, err
}

// canonical replaces v by the canonical form of its value.
func canonical(v *jsontext.Value) error {
	return v.Canonicalize(jsontext.CanonicalizeRawInts(false))
}

// member returns the part of whole that field names, and whether it exists.
func member(whole json.RawMessage, field string) (value json.RawMessage, ok bool, err error) {
	if !strings.HasPrefix(field, "/") {
		return step(whole, field)
	}
	value, ok = whole, true
	for token := range strings.SplitSeq(field[1:], "/") {
		if value, ok, err = step(value, unescaped(token)); !ok || err != nil {
			break
		}
	}
	return value, ok, err
}

// step returns a member of an object or an array.
func step(whole json.RawMessage, name string) (json.RawMessage, bool, error) {
	switch jsontext.Value(whole).Kind() {
	case '{':
		var object map[string]json.RawMessage
		if err := json.Unmarshal(whole, &object); err != nil {
			return nil, false, err
		}
		value, ok := object[name]
		return value, ok, oneCase(object, name)
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(whole, &list); err != nil {
			return nil, false, err
		}
		for i, value := range list {
			if strconv.Itoa(i) == name {
				return value, true, nil
			}
		}
		return nil, false, nil
	default:
		return nil, false, nil
	}
}

// errCase means that two readers would read different values from one body.
var errCase = errors.New("a member that counts is there in another case")

// oneCase returns an error if object has name in another case: encoding/json would
// take that member for the named one.
func oneCase(object map[string]json.RawMessage, name string) error {
	for other := range object {
		if other != name && strings.EqualFold(other, name) {
			return errCase
		}
	}
	return nil
}

// unescaped returns a token of a JSON Pointer without its escapes.
func unescaped(token string) string {
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
}

// unread explains why the fingerprint of a request could not be computed. Behind a
// middleware only the body can be the cause: the other parts of a [Request] can
// always be compared.
func (x *exchange) unread(err error) error {
	field, ok := errors.AsType[*semel.FieldError](err)
	if !ok || field.Field != "Input" {
		return err
	}
	whole, jerr := valueIn(x.in.body)
	if jerr == nil {
		_, jerr = numbered(whole)
	}
	if jerr == nil && jsontext.Value(whole).Kind() == '{' {
		return problem(codeBodyInvalid, "")
	}
	return bodyInvalid(jerr)
}

// bodyInvalid returns the problem of a body that is not the required JSON.
func bodyInvalid(err error) *Problem {
	detail := "The body is not a JSON object. Nothing was run."
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		detail = fmt.Sprintf("The body is not JSON, at byte %d. Nothing was run.", syntax.ByteOffset)
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		detail = "The body has a member twice. Nothing was run."
	case errors.Is(err, errNumber):
		detail = "The body has a number with more digits, or larger, than can be compared. Nothing was run."
	case errors.Is(err, errCase):
		detail = "The body has a member that counts under its name in another case. Nothing was run."
	}
	return problem(codeBodyInvalid, detail)
}
