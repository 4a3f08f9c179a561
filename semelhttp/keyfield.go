package semelhttp

import (
	"encoding/json"
	"fmt"
	"net/http"
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
		value, _, err := member(whole, field) // nil, as null is, if it does not exist
		if err != nil {
			return "", bodyInvalid(err)
		}
		key, ok := keyIn(value)
		if !ok {
			return "", problemOn(field, codeKeyMalformed, fmt.Sprintf("The key in %q is neither a string nor an integer.", field))
		}
		return key, nil
	}
}

// keyIn returns the key in a JSON value.
func keyIn(value any) (key string, ok bool) {
	switch v := value.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case json.Number:
		_, err := v.Int64()
		return v.String(), err == nil
	default:
		return "", false
	}
}
