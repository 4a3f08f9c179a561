package conform

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Profile is what a server says of itself where the draft leaves the choice to
// it, in the form of its file idempotency.json.
type Profile struct {
	Version        int            `json:"version"`
	Name           string         `json:"profile"`
	Specification  string         `json:"specification"`
	Header         string         `json:"header"`
	Required       bool           `json:"required"`
	Methods        []string       `json:"methods"`
	Key            KeyProfile     `json:"key"`
	Scope          string         `json:"scope"`
	OtherOperation string         `json:"other_operation"`
	Fingerprint    Fingerprint    `json:"fingerprint"`
	Retention      int64          `json:"retention_seconds"`
	AfterRetention string         `json:"after_retention"`
	InProgress     string         `json:"in_progress"`
	Wait           int64          `json:"wait_seconds"`
	ServerErrors   string         `json:"server_errors"`
	NeverStored    []int          `json:"never_stored"`
	Statuses       map[string]int `json:"statuses"`
	Errors         string         `json:"errors"`
	Problems       string         `json:"problems"`
	ReplayHeader   string         `json:"replay_header"`
	ReplayValue    string         `json:"replay_value"`
	ReplayMaxBytes int64          `json:"replay_max_bytes"`
	Reauthorizes   bool           `json:"reauthorizes"`
	Suite          Suite          `json:"suite,omitzero"`
	// Assumed are the members that neither the server nor a file declares, such as
	// "key.forms". They have their usual values.
	Assumed []string `json:"-"`
}

// KeyProfile says which keys a server takes.
type KeyProfile struct {
	Forms     []string `json:"forms"` // "string" (a structured field), "raw"
	Same      bool     `json:"same"`  // "k" and k are one key
	MaxLength int      `json:"max_length"`
	Time      string   `json:"time"` // "", "uuidv7", "ulid"
}

// Fingerprint says what makes it the same request.
type Fingerprint struct {
	Covers []string `json:"covers"` // of method, target, media_type, body
	Body   string   `json:"body"`   // "bytes", "json", "fields", "value", "none"
	Fields []string `json:"fields"`
	// Headers are the request headers that count besides the media type.
	Headers []string `json:"headers"`
}

// The names of the statuses that a server answers with itself.
const (
	keyMissing        = "key_missing"
	keyMalformed      = "key_malformed"
	keyReused         = "key_reused"
	keyExpired        = "key_expired"
	inProgress        = "in_progress"
	outcomeUnknown    = "outcome_unknown"
	resultUnavailable = "result_unavailable"
	unavailable       = "unavailable"
	unauthenticated   = "unauthenticated"
	forbidden         = "forbidden"
	bodyTooLarge      = "body_too_large"
)

// DefaultProfile declares what the draft says, and what most servers do where the draft is
// silent.
func DefaultProfile() Profile {
	return Profile{
		Version: 1, Name: "default", Specification: "draft-ietf-httpapi-idempotency-key-header-07",
		Header: "Idempotency-Key", Required: true, Methods: []string{"POST", "PATCH"},
		Key:   KeyProfile{Forms: []string{"string", "raw"}, Same: true, MaxLength: 255},
		Scope: "principal", OtherOperation: "independent",
		Fingerprint: Fingerprint{Covers: []string{"method", "target", "media_type", "body"}, Body: "bytes"},
		Retention:   86400, AfterRetention: "run", InProgress: "reject", ServerErrors: "certain",
		NeverStored: []int{401, 403, 408, 413, 415, 423, 425, 429},
		Statuses: map[string]int{
			keyMissing: 400, keyMalformed: 400, keyReused: 422, keyExpired: 410, inProgress: 409,
			outcomeUnknown: 409, resultUnavailable: 409, unavailable: 503, unauthenticated: 401,
			forbidden: 403, bodyTooLarge: 413,
		},
		Errors: "problem", Problems: "/problems/", ReplayHeader: "Idempotent-Replayed", ReplayValue: "true",
		ReplayMaxBytes: 1 << 20,
	}
}

//go:embed profiles/*.json
var builtIn embed.FS

// LoadProfile returns the built-in profile of that name, or else the one in the
// file of that name. What it does not say is as base says. A file may have no
// member that is not known.
func LoadProfile(name string, base Profile) (*Profile, error) {
	text, err := builtIn.ReadFile("profiles/" + name + ".json")
	if err != nil {
		text, err = os.ReadFile(name)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("profile %q is neither a file nor one of %s", name, strings.Join(builtInNames(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	p, err := parseProfile(text, base, true)
	if err != nil {
		return nil, fmt.Errorf("read profile %s: %w", name, err)
	}
	return p, nil
}

func builtInNames() []string {
	files, err := builtIn.ReadDir("profiles")
	if err != nil { // not reachable: the directory is part of the program
		return nil
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".json"))
	}
	return names
}

// parseProfile reads a profile. A server's own may have members that a later
// version adds; a file written by hand may not: they are misspelt.
func parseProfile(text []byte, p Profile, byHand bool) (*Profile, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if byHand {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(&p); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the object")
	}
	p.declare(text)
	return &p, p.valid()
}

// valid says which member has a value that nothing can be made of.
func (p *Profile) valid() error {
	if p.Version != 1 {
		return fmt.Errorf("version is %d; only 1 is known", p.Version)
	}
	if p.Header == "" {
		return errors.New("header is empty: the suite sends keys in a header")
	}
	if len(p.Methods) == 0 {
		return errors.New("methods is empty: nothing would be protected")
	}
	if len(p.Key.Forms) == 0 {
		return errors.New("key.forms is empty: no key would be taken")
	}
	if p.Key.MaxLength < 1 {
		return errors.New("key.max_length must be at least 1")
	}
	if p.Retention < 1 {
		return errors.New("retention_seconds must be at least 1")
	}
	if err := p.validValues(); err != nil {
		return err
	}
	return p.Suite.valid()
}

func (p *Profile) validValues() error {
	choices := []struct {
		field  string
		values []string
		of     []string
	}{
		{"key.forms", p.Key.Forms, []string{"string", "raw"}},
		{"key.time", []string{p.Key.Time}, []string{"", "uuidv7", "ulid"}},
		{"scope", []string{p.Scope}, []string{"principal", "shared"}},
		{"other_operation", []string{p.OtherOperation}, []string{"independent", "mismatch"}},
		{"fingerprint.covers", p.Fingerprint.Covers, []string{"method", "target", "media_type", "body"}},
		{"fingerprint.body", []string{p.Fingerprint.Body}, []string{"bytes", "json", "fields", "value", "none"}},
		{"after_retention", []string{p.AfterRetention}, []string{"run", "expired"}},
		{"in_progress", []string{p.InProgress}, []string{"reject", "wait"}},
		{"server_errors", []string{p.ServerErrors}, []string{"certain", "stored"}},
		{"errors", []string{p.Errors}, []string{"problem", "stripe"}},
	}
	for _, c := range choices {
		for _, v := range c.values {
			if !slices.Contains(c.of, v) {
				return fmt.Errorf("%s has %q; want one of %q", c.field, v, c.of)
			}
		}
	}
	return nil
}

// takes reports whether keys of that form are taken.
func (p *Profile) takes(form string) bool { return slices.Contains(p.Key.Forms, form) }

// covers reports whether that part of a request makes it the same one.
func (p *Profile) covers(part string) bool { return slices.Contains(p.Fingerprint.Covers, part) }

// stores reports whether a handler's answer of that status is kept.
func (p *Profile) stores(status int) bool {
	if status >= 500 {
		return p.ServerErrors == "stored"
	}
	return !slices.Contains(p.NeverStored, status)
}

func (p *Profile) retention() time.Duration { return time.Duration(p.Retention) * time.Second }
