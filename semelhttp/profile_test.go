package semelhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/semelhttp"
)

// profiled returns options with that profile.
func profiled(p semelhttp.Profile) semelhttp.Options {
	o := options()
	o.Profile = p
	return o
}

// direct passes the request to h as it is, also lines that no client would send.
func (a testRequest) direct(t *testing.T, h http.Handler) answer {
	t.Helper()
	w := httptest.NewRecorder()
	r := a.request(t, "")
	r.Pattern = "/ops"
	h.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

// protectedBy returns h behind the middleware of o.
func (b *testEngine) protectedBy(t *testing.T, o semelhttp.Options, h http.HandlerFunc) http.Handler {
	t.Helper()
	protect, err := semelhttp.Atomic(b.Engine, define("op", plain{}), o)
	check.Require(t, err, "Atomic")
	return protect(h)
}

// keyLines are header lines, and the key that each profile reads from them; empty:
// the line is malformed.
func keyLines() map[string]struct{ strict, lenient, stripe string } {
	const uuid = "8e03978e-40d5-43e8-bc93-6894a57f9324"
	const utf8 = "caf\u00e9"
	long := strings.Repeat("k", 255)
	return map[string]struct{ strict, lenient, stripe string }{
		`"` + uuid + `"`:             {uuid, uuid, `"` + uuid + `"`},
		uuid:                         {"", uuid, uuid},
		`abcdef`:                     {"", "abcdef", "abcdef"},
		`:YWJj:`:                     {"", ":YWJj:", ":YWJj:"},
		`12345`:                      {"", "12345", "12345"},
		`?1`:                         {"", "?1", "?1"},
		`@1700000000`:                {"", "@1700000000", "@1700000000"},
		`%"caf%c3%a9"`:               {"", `%"caf%c3%a9"`, `%"caf%c3%a9"`},
		`("a" "b")`:                  {"", `("a" "b")`, `("a" "b")`},
		`"a\"b"`:                     {`a"b`, `a"b`, `"a\"b"`},
		`"a\\b"`:                     {`a\b`, `a\b`, `"a\\b"`},
		`"a\x"`:                      {"", "", `"a\x"`},
		`"abc`:                       {"", "", `"abc`},
		`"a"b`:                       {"", "", `"a"b`},
		`"a", "b"`:                   {"", "", `"a", "b"`},
		"\"a\x7f\"":                  {"", "", ""},
		`"` + utf8 + `"`:             {"", "", ""},
		"\"a\tb\"":                   {"", "", ""},
		`"k1";v=2`:                   {"k1", "k1", `"k1";v=2`},
		`   "k1"  `:                  {"k1", "k1", `"k1"`},
		`"k 1"`:                      {"k 1", "k 1", `"k 1"`},
		`""`:                         {"", "", `""`},
		``:                           {"", "", ""},
		`" "`:                        {"", "", `" "`},
		`"` + long + `"`:             {long, long, ""},
		`"` + long + `k"`:            {"", "", ""},
		long + "k":                   {"", "", ""},
		`"V1StGXR8_Z5jdHi6B-myT"`:    {"V1StGXR8_Z5jdHi6B-myT", "V1StGXR8_Z5jdHi6B-myT", `"V1StGXR8_Z5jdHi6B-myT"`},
		`01ARZ3NDEKTSV4RRFFQ69G5FAV`: {"", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
		`"a:{x}*/%00;--'../"`:        {`a:{x}*/%00;--'../`, `a:{x}*/%00;--'../`, `"a:{x}*/%00;--'../"`},
		"\"a\r\nX-Injected: 1\"":     {"", "", ""},
	}
}

// TestProfilesReadTheKey: a valid key of a profile runs once; an invalid one is
// refused, and never runs as if there were no key.
func TestProfilesReadTheKey(t *testing.T) {
	t.Parallel()
	for _, optional := range []bool{false, true} {
		for profile, pick := range map[semelhttp.Profile]func(struct{ strict, lenient, stripe string }) string{
			semelhttp.Strict:  func(k struct{ strict, lenient, stripe string }) string { return k.strict },
			semelhttp.Lenient: func(k struct{ strict, lenient, stripe string }) string { return k.lenient },
			semelhttp.Stripe:  func(k struct{ strict, lenient, stripe string }) string { return k.stripe },
		} {
			t.Run(fmt.Sprintf("%v, optional %v", profile, optional), func(t *testing.T) {
				t.Parallel()
				for line, keys := range keyLines() {
					b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
					o := profiled(profile)
					o.Optional = optional
					h := b.protectedBy(t, o, created(n))
					want := pick(keys)
					got := testRequest{key: []string{line}}.direct(t, h)
					if want == "" {
						if got.status != http.StatusBadRequest || n.Load() != 0 || !strings.Contains(got.body, "key_malformed") {
							t.Errorf("%q: %d %s after %d runs, want key_malformed", line, got.status, got.body, n.Load())
						}
						continue
					}
					if r := b.record(t, "op", want); got.status != http.StatusCreated || r.Key != want {
						t.Errorf("%q: %d %s under %q, want it under %q", line, got.status, got.body, r.Key, want)
					}
					if again := (testRequest{key: []string{line}}).direct(t, h); !again.replayed() || n.Load() != 1 {
						t.Errorf("%q: the repeat is answered %d, after %d runs", line, again.status, n.Load())
					}
				}
			})
		}
	}
}

// TestStrictRefusesARawKeyByName: the problem says that the key must be quoted.
func TestStrictRefusesARawKeyByName(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	srv := b.leasedServer(t, define("op", plain{}), profiled(semelhttp.Strict), created(n))
	for _, lines := range [][]string{{"k1"}, {`"k1"`, `"k1"`}, {`"a"`, `"b"`}} {
		got := testRequest{key: lines}.do(t, srv)
		wantProblem(t, got, http.StatusBadRequest, "key_malformed")
		check.Equal(t, got.problem(t).Field, semelhttp.HeaderKey, "%q: the field", lines)
	}
	check.Equal(t, n.Load(), 0, "the handler ran")
	wantFirst(t, testRequest{key: []string{`"k1"`}}.do(t, srv), http.StatusCreated, "run 1")
}

func TestProfilesHaveNames(t *testing.T) {
	t.Parallel()
	for p, want := range map[semelhttp.Profile]string{
		semelhttp.Lenient: "lenient", semelhttp.Strict: "strict", semelhttp.Stripe: "stripe", 9: "Profile(9)",
	} {
		check.Equal(t, p.String(), want, "String()")
	}
	b := newTestEngine(t, semel.Options{})
	_, err := semelhttp.Atomic(b.Engine, define("op", plain{}), profiled(9))
	if f, ok := errtype.Find[*semel.FieldError](err); !ok || f.Field != "Profile" {
		t.Errorf("Atomic with an unknown profile: %v, want an error that names Profile", err)
	}
}
