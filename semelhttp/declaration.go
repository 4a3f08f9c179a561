package semelhttp

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/semelgo/semel/store"
)

// specification is the draft that describes the Idempotency-Key header.
const specification = "draft-ietf-httpapi-idempotency-key-header-07"

// Declaration is what an API publishes about its keys, for programs: for clients
// that want to know how long they may retry, and for test suites that compare a
// server with its declaration. docs/http.md explains each member.
type Declaration struct {
	Version       int    `json:"version"` // version of this format: 1
	Profile       string `json:"profile"`
	Specification string `json:"specification"`
	// Header is the request header that carries the key, or empty if the key is a
	// field of the request.
	Header   string         `json:"header"`
	Required bool           `json:"required"`
	Methods  []string       `json:"methods"`
	Key      KeyDeclaration `json:"key"`
	// Scope says among which requests a key is unique: "principal" or "shared".
	Scope string `json:"scope"`
	// OtherOperation says what a used key is on another route: "independent" or
	// "mismatch".
	OtherOperation string                 `json:"other_operation"`
	Fingerprint    FingerprintDeclaration `json:"fingerprint"`
	// RetentionSeconds is how long a finished key is kept at least, from its
	// outcome. AfterRetention says what happens then: the request runs as a new one
	// ("run"), or is "expired".
	RetentionSeconds int64  `json:"retention_seconds"`
	AfterRetention   string `json:"after_retention"`
	// InProgress says what a retry gets while the first request runs: "reject", or
	// "wait" for up to WaitSeconds.
	InProgress  string `json:"in_progress"`
	WaitSeconds int64  `json:"wait_seconds"`
	// ServerErrors says what a response of the handler from 500 up is: "certain" if
	// it is not stored and runs again only with proof that nothing happened, or
	// "stored".
	ServerErrors string `json:"server_errors"`
	NeverStored  []int  `json:"never_stored"`
	// Statuses are the statuses of the errors of this package, by code.
	Statuses map[string]int `json:"statuses"`
	// Errors is the format of errors: "problem" or "stripe".
	Errors string `json:"errors"`
	// Problems is the URL prefix of the documentation of a code.
	Problems     string `json:"problems"`
	ReplayHeader string `json:"replay_header"`
	ReplayValue  string `json:"replay_value"`
	// ReplayMaxBytes is the largest response body that is replayed.
	ReplayMaxBytes int64 `json:"replay_max_bytes"`
	// Reauthorizes means that a replay is authorized like a first request.
	Reauthorizes bool `json:"reauthorizes"`
}

// KeyDeclaration is the part of a [Declaration] about the key itself.
type KeyDeclaration struct {
	// Forms are the accepted forms of the header: "string", "raw" or both. Same
	// means that both forms of one text are one key. Empty if the key is not in a
	// header.
	Forms     []string `json:"forms"`
	Same      bool     `json:"same"`
	MaxLength int      `json:"max_length"`
	// Time is the kind of key that contains its time, "uuidv7" or "ulid", and is
	// refused if that is too old; or empty.
	Time string `json:"time"`
}

// FingerprintDeclaration is the part of a [Declaration] about what makes two
// requests the same.
type FingerprintDeclaration struct {
	// Covers lists which of method, target, media_type and body are compared.
	Covers []string `json:"covers"`
	// Body says how bodies are compared: "bytes", "json", "fields", "value".
	Body string `json:"body"`
	// Fields are the compared fields if Body is "fields".
	Fields []string `json:"fields"`
	// Headers are the compared request headers besides the media type.
	Headers []string `json:"headers"`
}

// Declare serves the [Declaration] of o and t, as JSON. Mount it at the path that
// clients know:
//
//	mux.Handle("GET /.well-known/idempotency", declared)
func Declare(o Options, t Terms) (http.Handler, error) {
	d, err := DeclarationOf(o, t)
	if err != nil {
		return nil, err
	}
	text, _ := json.MarshalIndent(d, "", "  ") // strings, numbers and lists of them can always be encoded
	text = append(text, '\n')
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "max-age=3600")
		_, _ = w.Write(text) // a client that hung up retries
	}), nil
}

// DeclarationOf returns what [Declare] serves. Its error is a *semel.FieldError.
func DeclarationOf(o Options, t Terms) (*Declaration, error) {
	s, err := o.settle()
	if err != nil {
		return nil, err
	}
	if err := t.valid(); err != nil {
		return nil, err
	}
	d := &Declaration{
		Version: 1, Profile: s.name, Specification: specification,
		Header: HeaderKey, Required: !s.Optional, Methods: slices.Clone(t.Methods),
		Key:              KeyDeclaration{Forms: s.forms, Same: len(s.forms) > 1, MaxLength: store.MaxKey, Time: t.KeyTime},
		Scope:            choose(t.Shared, "shared", "principal"),
		OtherOperation:   choose(t.OneOperation, "mismatch", "independent"),
		Fingerprint:      t.fingerprint(s.FingerprintHeaders),
		RetentionSeconds: int64(t.Retention / time.Second),
		AfterRetention:   choose(t.KeyTime != "", "expired", "run"),
		InProgress:       choose(t.Wait > 0, "wait", "reject"), WaitSeconds: seconds(t.Wait),
		ServerErrors: choose(s.Profile == Stripe && !t.Value, "stored", "certain"), // the result of a function has no status
		NeverStored:  s.neverStored(), Statuses: s.declaredStatuses(), Errors: s.errors, Problems: s.ProblemBase,
		ReplayHeader: HeaderReplayed, ReplayValue: "true", ReplayMaxBytes: s.MaxResponse,
		Reauthorizes: s.Reauthorize != nil,
	}
	if len(d.Methods) == 0 {
		d.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	if !t.Value { // otherwise every method is protected
		d.Methods = slices.DeleteFunc(d.Methods, s.Profile.ignores)
	}
	if s.KeyFunc != nil {
		d.Header, d.Key.Forms, d.Key.Same = "", []string{}, false
	}
	return d, nil
}

func choose(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// neverStored lists the statuses of a handler that are not stored and prove that
// nothing happened.
func (s *settings) neverStored() []int {
	statuses := []int{}
	for status := http.StatusBadRequest; status < 600; status++ {
		if s.verdict(status) == store.NotCommitted {
			statuses = append(statuses, status)
		}
	}
	return statuses
}

func (s *settings) declaredStatuses() map[string]int {
	statuses := make(map[string]int)
	for _, p := range catalogue() {
		if !p.Form {
			statuses[p.Code] = cmp.Or(s.statuses[p.Code], p.Status)
		}
	}
	return statuses
}
