package semelhttp

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/errtype"
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
		var text []byte
		body, err := chosen(r.Body, fields)
		if err == nil {
			text, err = canonical(struct {
				Request

				Body any `json:"body"`
			}{r, body})
		}
		if err != nil {
			return noFingerprint{bodyInvalid(err)}
		}
		return semel.Raw(text)
	}
}

// noFingerprint is the fingerprint of a request that has none: the engine refuses its call
// before it uses the store, with an error that wraps the problem.
type noFingerprint struct{ problem *Problem }

// AppendFingerprint returns the problem.
func (n noFingerprint) AppendFingerprint([]byte) ([]byte, error) { return nil, n.problem }

const (
	errNoObject = bodyError("is not a JSON object")
	// errCase means that two readers would read different values from one body.
	errCase = bodyError("has a member that counts under its name in another case")
)

// chosen returns the chosen fields of a body, or the whole body.
func chosen(body []byte, fields []string) (any, error) {
	if len(fields) == 0 {
		return valueIn(body)
	}
	whole, err := objectIn(body)
	if err != nil {
		return nil, err
	}
	picked := make(map[string]any)
	for _, field := range fields {
		value, ok, err := member(whole, field)
		if err != nil {
			return nil, err
		}
		if ok {
			picked[field] = value
		}
	}
	return picked, nil
}

// valueIn returns the JSON value of a body, with each number as it is written, in a
// jsontext.Value. A member that occurs twice is an error, and so is invalid UTF-8.
func valueIn(body []byte) (v any, err error) {
	err = json.Unmarshal(body, &v, json.WithUnmarshalers(json.UnmarshalFromFunc(func(in *jsontext.Decoder, v *any) error {
		if in.PeekKind() == '0' {
			*v = jsontext.Value(nil)
		}
		return json.SkipFunc
	})))
	return v, err
}

// objectIn returns the JSON object of a body.
func objectIn(body []byte) (any, error) {
	whole, err := valueIn(body)
	if _, ok := whole.(map[string]any); err == nil && !ok {
		err = errNoObject
	}
	return whole, err
}

// canonical returns the JSON of v in the canonical form of its value.
func canonical(v any) (text jsontext.Value, err error) {
	if text, err = json.Marshal(v, json.WithMarshalers(json.MarshalToFunc(spell))); err == nil {
		err = text.Canonicalize(jsontext.CanonicalizeRawInts(false))
	}
	return text, err
}

// member returns the part of whole that field names, and whether it exists.
func member(whole any, field string) (value any, ok bool, err error) {
	path := slices.Values([]string{field})
	if strings.HasPrefix(field, "/") {
		path = jsontext.Pointer(field).Tokens()
	}
	value, ok = whole, true
	for token := range path {
		if value, ok, err = step(value, token); !ok || err != nil {
			break
		}
	}
	return value, ok, err
}

// step returns a member of an object or an array. A member whose name has another case
// is an error: encoding/json would take it for the named one.
func step(whole any, name string) (any, bool, error) {
	switch whole := whole.(type) {
	case map[string]any:
		for other := range whole {
			if other != name && strings.EqualFold(other, name) {
				return nil, false, errCase
			}
		}
		value, ok := whole[name]
		return value, ok, nil
	case []any:
		if i, err := strconv.Atoi(name); err == nil && 0 <= i && i < len(whole) && strconv.Itoa(i) == name {
			return whole[i], true, nil
		}
	}
	return nil, false, nil
}

// bodyError says what is wrong with a body: it completes "The body".
type bodyError string

func (e bodyError) Error() string { return "semelhttp: the body " + string(e) }

// bodyInvalid returns the problem of a body that is not the required JSON.
func bodyInvalid(err error) *Problem {
	reason, known := errtype.Find[bodyError](err)
	syntax, isSyntax := errtype.Find[*jsontext.SyntacticError](err)
	switch {
	case known:
	case errors.Is(err, jsontext.ErrDuplicateName):
		reason = "has a member twice"
	case isSyntax:
		reason = bodyError(fmt.Sprintf("is not JSON, at byte %d", syntax.ByteOffset))
	default:
		reason = errNoObject
	}
	return problem(codeBodyInvalid, fmt.Sprintf("The body %s. Nothing was run.", string(reason)))
}

// KeyField returns an Options.KeyFunc that finds the key in a JSON body: field is
// named as for [JSONFields]. The key is a string, or the digits of an integer. A
// request without the field, or with null in it, has no key. A body that is no JSON
// object, has a member twice, or has the field in another case is 400 body_invalid.
func KeyField(field string) func(*http.Request, []byte) (string, error) {
	return func(_ *http.Request, body []byte) (string, error) {
		whole, err := objectIn(body)
		if err != nil {
			return "", bodyInvalid(err)
		}
		value, _, err := member(whole, field) // nil, as null is, if it does not exist
		if err != nil {
			return "", bodyInvalid(err)
		}
		switch key := value.(type) {
		case nil:
			return "", nil
		case string:
			return key, nil
		case jsontext.Value:
			if _, err := strconv.ParseInt(string(key), 10, 64); err == nil {
				return string(key), nil
			}
		}
		return "", problemOn(field, codeKeyMalformed, fmt.Sprintf("The key in %q is neither a string nor an integer.", field))
	}
}
