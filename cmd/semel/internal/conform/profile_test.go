package conform_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semelgo/semel/cmd/semel/internal/conform"
	"github.com/semelgo/semel/internal/check"
)

// TestInvalidProfilesAreRejected with an error that names the member.
func TestInvalidProfilesAreRejected(t *testing.T) {
	t.Parallel()
	const endpoint = `"endpoint":{"url":"/x","body":"{{op}}{{n}}","counter":{"url":"/c"}}`
	for text, names := range map[string]string{
		`{"headr":"X"}`:                                   "headr",
		`{"header":""}`:                                   "header",
		`{"header":7}`:                                    "header",
		`{} {}`:                                           "more text after the object",
		`{"version":2}`:                                   "version",
		`{"methods":[]}`:                                  "methods",
		`{"key":{"forms":[]}}`:                            "key.forms",
		`{"key":{"forms":["token"]}}`:                     "key.forms",
		`{"key":{"max_length":0}}`:                        "key.max_length",
		`{"key":{"time":"ksuid"}}`:                        "key.time",
		`{"scope":"tenant"}`:                              "scope",
		`{"other_operation":"replay"}`:                    "other_operation",
		`{"fingerprint":{"body":"xml"}}`:                  "fingerprint.body",
		`{"fingerprint":{"covers":["cookies"]}}`:          "fingerprint.covers",
		`{"retention_seconds":0}`:                         "retention_seconds",
		`{"after_retention":"replay"}`:                    "after_retention",
		`{"in_progress":"queue"}`:                         "in_progress",
		`{"server_errors":"sometimes"}`:                   "server_errors",
		`{"errors":"html"}`:                               "errors",
		`{"suite":{"offers":["magic"]}}`:                  "suite.offers",
		`{"suite":{"endpoint":{}}}`:                       "suite.endpoint.url",
		`{"suite":{"endpoint":{"url":"/x"}}}`:             "{{op}}",
		`{"suite":{"endpoint":{"url":"/{{op}}"}}}`:        "{{n}}",
		`{"suite":{"offers":["clock"],` + endpoint + `}}`: "suite.offers",
		`{"suite":{"endpoint":{"url":"/x","body":"{{op}}{{n}}","counter":{"pointer":"/n"}}}}`:           "counter.url",
		`{"suite":{"endpoint":{"url":"/x","body":"{{op}}{{n}}","counter":{"url":"/c","pointer":"n"}}}}`: "counter.pointer",
		`{"suite":{"endpoint":{"url":"/x","body":"{{op}}{{n}}","counter":{"url":"/c","match":"~"}}}}`:   "counter.match",
		`{"suite":{"endpoint":{"url":"http://x/y"}}}`:                                                   "endpoint.url",
		`{"suite":{"endpoint":{"url":"/x","body":"{{op}}{{n}}","counter":{"url":"c"}}}}`:                "counter.url",
	} {
		file := filepath.Join(t.TempDir(), "idempotency.json")
		check.Require(t, os.WriteFile(file, []byte(text), 0o600))
		if _, err := conform.LoadProfile(file, conform.DefaultProfile()); err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("%s: %v, want an error about %s", text, err, names)
		}
	}
	_, err := conform.LoadProfile("no-such-profile", conform.DefaultProfile())
	if err == nil || !strings.Contains(err.Error(), "strict") {
		t.Errorf("an unknown name: %v, want an error that lists the known names", err)
	}
}

// TestProfileIsCompletedByTheServersOwn: members that a file omits have the
// values of the server's own profile.
func TestProfileIsCompletedByTheServersOwn(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "idempotency.json")
	check.Require(t, os.WriteFile(file, []byte(`{"required":false,"statuses":{"key_reused":409}}`), 0o600))
	own := conform.DefaultProfile()
	own.Retention = 77
	p := check.Must(conform.LoadProfile(file, own))(t)
	if p.Required || p.Retention != 77 || p.Statuses["key_reused"] != 409 || p.Statuses["key_missing"] != 400 {
		t.Errorf("LoadProfile = %+v", p)
	}
}
