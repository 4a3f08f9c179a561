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

// Profile is the choices that a server declares where the draft leaves a
// choice, in the format of its file idempotency.json.
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
	// Assumed are the members that neither the server nor a file declares, for
	// example "key.forms". They have their usual values.
	Assumed []string `json:"-"`
}

// KeyProfile declares which keys a server accepts.
type KeyProfile struct {
	Forms     []string `json:"forms"` // "string" (a structured field), "raw"
	Same      bool     `json:"same"`  // "k" and k are one key
	MaxLength int      `json:"max_length"`
	Time      string   `json:"time"` // "", "uuidv7", "ulid"
}

// Fingerprint declares which parts make two requests the same.
type Fingerprint struct {
	Covers []string `json:"covers"` // of method, target, media_type, body
	Body   string   `json:"body"`   // "bytes", "json", "fields", "value", "none"
	Fields []string `json:"fields"`
	// Headers are the request headers in the fingerprint, apart from the media
	// type.
	Headers []string `json:"headers"`
}

// Names of the statuses of the idempotency layer's own answers.
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

// DefaultProfile declares what the draft requires, and what most servers do
// where it leaves a choice.
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

// LoadProfile returns the built-in profile with that name, or the profile in
// the file with that name. Members that are absent have the values of base. A
// file with an unknown member is rejected.
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

// parseProfile parses a profile. A server's own profile may have unknown
// members, because a later version may add some. A file written by hand may
// not, because an unknown member is probably misspelled.
func parseProfile(text []byte, p Profile, byHand bool) (*Profile, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if byHand {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(&p); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more text after the object")
	}
	p.declare(text)
	return &p, p.valid()
}

// valid returns an error that names a member with an unusable value.
func (p *Profile) valid() error {
	if p.Version != 1 {
		return fmt.Errorf("version is %d; only 1 is known", p.Version)
	}
	if p.Header == "" {
		return errors.New("header is empty: the suite sends keys in a header")
	}
	if len(p.Methods) == 0 {
		return errors.New("methods is empty: no request would be protected")
	}
	if len(p.Key.Forms) == 0 {
		return errors.New("key.forms is empty: no key would be accepted")
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

// takes reports whether the server accepts keys of that form.
func (p *Profile) takes(form string) bool { return slices.Contains(p.Key.Forms, form) }

// covers reports whether that part of a request is in the fingerprint.
func (p *Profile) covers(part string) bool { return slices.Contains(p.Fingerprint.Covers, part) }

// stores reports whether the server stores a handler's answer with that status.
func (p *Profile) stores(status int) bool {
	if status >= 500 {
		return p.ServerErrors == "stored"
	}
	return !slices.Contains(p.NeverStored, status)
}

func (p *Profile) retention() time.Duration { return time.Duration(p.Retention) * time.Second }
