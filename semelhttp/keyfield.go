package semelhttp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

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
		value, ok, err := member(whole, field)
		if err != nil {
			return "", bodyInvalid(err)
		}
		if !ok {
			return "", nil
		}
		key, ok := keyIn(jsontext.Value(value))
		if !ok {
			p := problem(codeKeyMalformed, fmt.Sprintf("The key in %q is neither a string nor an integer.", field))
			p.Field = field
			return "", p
		}
		return key, nil
	}
}

// keyIn returns the key in a JSON value.
func keyIn(v jsontext.Value) (string, bool) {
	switch v.Kind() {
	case 'n':
		return "", true
	case '"':
		var key string
		return key, json.Unmarshal(v, &key) == nil
	case '0':
		_, err := strconv.ParseInt(string(v), 10, 64)
		return string(v), err == nil
	default:
		return "", false
	}
}
