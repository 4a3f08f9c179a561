package client_test

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp/client"
)

// TestTransportGeneratesAKeyForEachCall: a UUID of version 7, as a structured string
// or raw.
func TestTransportGeneratesAKeyForEachCall(t *testing.T) {
	t.Parallel()
	const id = `[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
	for raw, form := range map[bool]string{false: `^"` + id + `"$`, true: "^" + id + "$"} {
		drawn := map[string]bool{}
		for range 10 {
			s, url := plays(t, status(http.StatusOK))
			r := post(t, url, strings.NewReader("x"))
			trip(t, &client.Transport{RawKeys: raw}, r)
			key := s.wantSame(t, 1, "x")
			if !regexp.MustCompile(form).MatchString(key) || drawn[key] {
				t.Errorf("the key is %s, want a new one like %s", key, form)
			}
			check.Equal(t, r.Header.Get(headerKey), "", "the caller's request was changed")
			drawn[key] = true
		}
	}
}

// TestTransportKeepsTheCallersKey byte for byte, and rejects an
// empty key and several keys.
func TestTransportKeepsTheCallersKey(t *testing.T) {
	t.Parallel()
	for _, line := range []string{`"k1"`, `k1`, `"k1";v=2`, strings.Repeat("k", 300), `"a\"b"`} {
		s, url := plays(t, status(http.StatusServiceUnavailable), status(http.StatusOK))
		r := post(t, url, strings.NewReader("x"))
		r.Header.Set(headerKey, line)
		trip(t, &client.Transport{KeyFunc: func(*http.Request) (string, error) { return "other", nil }}, r)
		check.Equal(t, s.wantSame(t, 2, "x"), line, "sent the key")
	}
	s, url := plays(t, status(http.StatusOK))
	for _, lines := range [][]string{{""}, {"a", "b"}, {"a", "a"}} {
		b := newBody("x")
		r := post(t, url, b)
		r.Header[headerKey] = lines
		_, err := quick(new(client.Transport)).RoundTrip(r)
		wantFieldError(t, err, headerKey)
		b.wantClosed(t)
	}
	check.Equal(t, len(s.arrived()), 0, "requests were sent")
}

// TestTransportFindsAKeyInAnySpelling: one that Header.Set has not written goes out
// too, and the server would read it.
func TestTransportFindsAKeyInAnySpelling(t *testing.T) {
	t.Parallel()
	s, url := plays(t, status(http.StatusOK))
	for _, name := range []string{"idempotency-key", "IDEMPOTENCY-KEY"} {
		b := newBody("x")
		r := post(t, url, b)
		r.Header[name] = []string{"mine"}
		_, err := quick(new(client.Transport)).RoundTrip(r)
		wantFieldError(t, err, headerKey)
		b.wantClosed(t)
	}
	check.Equal(t, len(s.arrived()), 0, "requests were sent")
}

// TestTransportCallsKeyFunc, and sends only what is a key.
func TestTransportCallsKeyFunc(t *testing.T) {
	t.Parallel()
	keyFunc := func(key string, err error) *client.Transport {
		return &client.Transport{KeyFunc: func(*http.Request) (string, error) { return key, err }}
	}
	for key, want := range map[string]string{"order 7": `"order 7"`, `a"b\c`: `"a\"b\\c"`} {
		s, url := plays(t, status(http.StatusOK))
		trip(t, keyFunc(key, nil), post(t, url, strings.NewReader("x")))
		check.Equal(t, s.wantSame(t, 1, "x"), want, "%q was sent as", key)
	}
	s, url := plays(t, status(http.StatusOK))
	for _, key := range []string{"", " k", "k\n", "ключ", strings.Repeat("k", 256)} {
		_, err := quick(keyFunc(key, nil)).RoundTrip(post(t, url, strings.NewReader("x")))
		wantFieldError(t, err, "Key")
	}
	lost := errors.New("the key is lost")
	if _, err := quick(keyFunc("k", lost)).RoundTrip(post(t, url, strings.NewReader("x"))); !errors.Is(err, lost) {
		t.Errorf("got the error %v, want KeyFunc's", err)
	}
	check.Equal(t, len(s.arrived()), 0, "requests were sent")
}
