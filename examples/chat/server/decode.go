package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/semelgo/semel/semelhttp"
)

// maxBody is the largest request body, in bytes. It has room for the longest
// message with each character escaped. A client that stalls holds no more than that.
const maxBody = 64 << 10

// limited limits the body that next can read to maxBody. It refuses addresses with characters that
// PostgreSQL cannot store: nothing is there, and a retry would not help.
func limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !utf8.ValidString(r.URL.Path) || strings.ContainsRune(r.URL.Path, 0) {
			noAddress().Write(w)
			return
		}
		if r.ContentLength > maxBody {
			tooLarge().Write(w)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

func noAddress() *semelhttp.Problem { return problem(codeNotFound, "", "There is no such address.") }

func tooLarge() *semelhttp.Problem {
	return problem(codeTooLarge, fieldBody, "A body may have %d bytes.", maxBody)
}

// fieldBody is the field of problems about the whole body.
const fieldBody = "body"

// field is a member of a request body.
type field struct {
	name     string
	optional bool
	// set stores the value, or returns what is wrong with it.
	set func(json.RawMessage) (wrong string)
}

// readObject reads the body of r as a JSON object with exactly these fields. An
// error is a problem that names the field.
func readObject(r *http.Request, fields ...field) *semelhttp.Problem {
	// A page of another site can send a form, but not JSON, without the browser asking
	// this server first.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return problem(codeMediaType, "Content-Type", "Send Content-Type: application/json.")
	}
	text, p := readBody(r)
	if p != nil {
		return p
	}
	return readFields(text, fields...)
}

// readFields reads a JSON object as readObject does.
func readFields(text []byte, fields ...field) *semelhttp.Problem {
	if !utf8.Valid(text) {
		return problem(codeInvalid, fieldBody, "The body is not UTF-8.")
	}
	given, p := takeApart(text, fields)
	if p != nil {
		return p
	}
	for _, f := range fields {
		value, ok := given[f.name]
		if !ok && f.optional {
			continue
		}
		if !ok {
			return problem(codeInvalid, f.name, "The field %q is missing.", f.name)
		}
		if wrong := f.set(value); wrong != "" {
			return problem(codeInvalid, f.name, "The field %q %s.", f.name, wrong)
		}
	}
	return nil
}

func readBody(r *http.Request) ([]byte, *semelhttp.Problem) {
	text, err := io.ReadAll(r.Body)
	if errors.As(err, new(*http.MaxBytesError)) {
		return nil, tooLarge()
	}
	if err != nil {
		return nil, problem(codeInvalid, fieldBody, "The body ended early.")
	}
	return text, nil
}

// takeApart returns the members of an object. It rejects unknown and duplicate
// members by name.
func takeApart(text []byte, fields []field) (map[string]json.RawMessage, *semelhttp.Problem) {
	malformed := func() *semelhttp.Problem {
		return problem(codeInvalid, fieldBody, "The body is not one JSON object.")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, malformed()
	}
	given := make(map[string]json.RawMessage)
	for d.More() {
		token, err := d.Token()
		name, isName := token.(string)
		var value json.RawMessage
		if err != nil || !isName || d.Decode(&value) != nil {
			return nil, malformed()
		}
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
			return nil, problem(codeInvalid, name, "There is no field %q.", name)
		}
		if _, twice := given[name]; twice {
			return nil, problem(codeInvalid, name, "The field %q is there twice.", name)
		}
		given[name] = value
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, malformed()
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, malformed()
	}
	return given, nil
}

// textField is a text of 1 to limit characters, at least one of them visible.
func textField(name string, limit int, into *string) field {
	return field{name: name, set: func(value json.RawMessage) string {
		if value[0] != '"' || json.Unmarshal(value, into) != nil {
			return "must be a text"
		}
		return wrongText(*into, limit)
	}}
}

// wrongText returns what is wrong with a text that must have 1 to limit characters, at least one
// of them visible.
func wrongText(text string, limit int) string {
	switch {
	case !strings.ContainsFunc(text, visible):
		return "must not be empty" // also: only spaces and invisible characters
	case strings.ContainsRune(text, 0):
		return "must not have the character U+0000" // PostgreSQL cannot store it
	case utf8.RuneCountInString(text) > limit:
		return fmt.Sprintf("is longer than %d characters", limit)
	default:
		return ""
	}
}

// visible reports whether a character can be seen. It cannot know all fonts.
func visible(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.IsMark(r) }

// userField is the ID of a user.
func userField(name string, into *int64) field {
	return field{name: name, set: func(value json.RawMessage) string {
		if json.Unmarshal(value, into) != nil || *into <= 0 {
			return "must be a user's number"
		}
		return ""
	}}
}

// usersField is a list of at most limit user IDs.
func usersField(name string, limit int, into *[]int64) field {
	return field{name: name, set: func(value json.RawMessage) string {
		var ids []json.Number
		if value[0] != '[' || json.Unmarshal(value, &ids) != nil || bytes.ContainsRune(value, '"') {
			return "must be a list of users' numbers"
		}
		if len(ids) > limit {
			return fmt.Sprintf("has more than %d users", limit)
		}
		users := make([]int64, len(ids))
		for i, id := range ids {
			n, err := id.Int64()
			if err != nil || n <= 0 {
				return fmt.Sprintf("has %q, which is no user's number", id)
			}
			users[i] = n
		}
		*into = users
		return ""
	}}
}

// namesField is a list of at most limit names of users.
func namesField(name string, limit int, into *[]string) field {
	return field{name: name, set: func(value json.RawMessage) string {
		var names []*string
		if value[0] != '[' || json.Unmarshal(value, &names) != nil || slices.Contains(names, nil) {
			return "must be a list of users' names"
		}
		if len(names) > limit {
			return fmt.Sprintf("has more than %d users", limit)
		}
		*into = make([]string, len(names))
		for i, n := range names {
			if utf8.RuneCountInString(*n) > maxName {
				return fmt.Sprintf("has a name that is longer than %d characters", maxName)
			}
			(*into)[i] = *n
		}
		return ""
	}}
}

// numberField is the number of a message.
func numberField(name string, into *int64) field {
	return field{name: name, set: func(value json.RawMessage) string {
		if json.Unmarshal(value, into) != nil || value[0] == 'n' || *into < 0 {
			return "must be a whole number from 0"
		}
		return ""
	}}
}

// maxText is the longest message, in characters.
const maxText = 4000

// maxName is the longest name of a user or a group, in characters.
const maxName = 100

// Fields of bodies.
const (
	fieldText     = "text"
	fieldName     = "name"
	fieldPassword = "password"
)
