package semelhttp

import (
	"slices"
	"time"

	"github.com/semelgo/semel"
)

// Terms are promises of an API that do not follow from Options.
type Terms struct {
	// Methods that are protected. None: POST and PATCH.
	Methods []string
	// Retention is that of the operations, at least a second. Required.
	Retention time.Duration
	// Wait is that of the operations. Zero: retries are answered at once.
	Wait time.Duration
	// Shared means that all callers share their keys: ScopeFunc returns
	// semel.Shared.
	Shared bool
	// OneOperation means that one operation serves several routes, so that a key
	// used at one is refused at another.
	OneOperation bool
	// KeyTime is "uuidv7" or "ulid" if the operations have a KeyTime.
	KeyTime string
	// Value means that the operations are behind [Handle]: bodies are compared as
	// the endpoint decoded them, no method ignores the key, and no status from 500
	// up is stored, in any profile.
	Value bool
	// IgnoreTarget means that the endpoints behind [Handle] ignore the target.
	IgnoreTarget bool
	// Fields are those given to [JSONFields]; an empty list that is not nil means
	// the whole body. Nil: bodies are compared as they were sent.
	Fields []string
}

func (t Terms) valid() error {
	switch {
	case t.Retention < time.Second:
		return &semel.FieldError{Field: "Retention", Reason: "must be at least a second"}
	case t.Wait < 0:
		return &semel.FieldError{Field: "Wait", Reason: "is negative"}
	case t.KeyTime != "" && t.KeyTime != "uuidv7" && t.KeyTime != "ulid":
		return &semel.FieldError{Field: "KeyTime", Reason: "is neither uuidv7 nor ulid"}
	case t.IgnoreTarget && !t.Value:
		return &semel.FieldError{Field: "IgnoreTarget", Reason: "is for endpoints behind Handle, which Value says"}
	case t.Value && t.Fields != nil:
		return &semel.FieldError{Field: "Fields", Reason: "and Value exclude each other"}
	default:
		return nil
	}
}

func (t Terms) fingerprint(headers []string) FingerprintDeclaration {
	f := FingerprintDeclaration{Covers: []string{"method", "target", "media_type", "body"}, Body: "bytes", Fields: []string{}}
	f.Headers = append([]string{}, headers...)
	switch {
	case t.Value:
		f.Covers, f.Body = []string{"method", "target", "body"}, "value"
		if t.IgnoreTarget {
			f.Covers = []string{"body"}
		}
	case t.Fields != nil && len(t.Fields) == 0:
		f.Body = "json"
	case t.Fields != nil:
		f.Body, f.Fields = "fields", slices.Clone(t.Fields)
	}
	return f
}
