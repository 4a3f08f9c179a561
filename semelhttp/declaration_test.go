package semelhttp_test

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/semelhttp"
)

func declared(t *testing.T, o semelhttp.Options, terms semelhttp.Terms) *semelhttp.Declaration {
	t.Helper()
	d, err := semelhttp.DeclarationOf(o, terms)
	check.Require(t, err, "DeclarationOf")
	return d
}

// TestDeclarationHasTheOptions: each option and each term is in it.
func TestDeclarationHasTheOptions(t *testing.T) {
	t.Parallel()
	o := profiled(semelhttp.Stripe)
	o.Optional, o.MaxResponse, o.ProblemBase = true, 100, "https://docs.example/"
	o.Reauthorize = func(*http.Request) error { return nil }
	o.KeyFunc = semelhttp.KeyField("id")
	d := declared(t, o, semelhttp.Terms{
		Methods: []string{"POST", "DELETE", "GET", "PUT"}, Retention: 90 * time.Second, Wait: 1500 * time.Millisecond,
		Shared: true, OneOperation: true, KeyTime: "uuidv7", Fields: []string{"amount"},
	})
	if d.Profile != "stripe" || d.Errors != "stripe" || d.ServerErrors != "stored" || d.Statuses["key_reused"] != 400 ||
		d.Key.Forms == nil || len(d.Key.Forms) != 0 || d.Key.Same || !slices.Equal(d.Methods, []string{"POST", "PUT"}) {
		t.Errorf("of the profile: %+v", d)
	}
	if d.Required || d.ReplayMaxBytes != 100 || d.Problems != "https://docs.example/" || !d.Reauthorizes || d.Header != "" {
		t.Errorf("of the options: %+v", d)
	}
	if d.RetentionSeconds != 90 || d.InProgress != "wait" || d.WaitSeconds != 2 || d.Scope != "shared" ||
		d.OtherOperation != "mismatch" || d.Key.Time != "uuidv7" || d.AfterRetention != "expired" ||
		d.Fingerprint.Body != "fields" || !slices.Equal(d.Fingerprint.Fields, []string{"amount"}) {
		t.Errorf("of the terms: %+v", d)
	}
	strict := declared(t, profiled(semelhttp.Strict), semelhttp.Terms{Retention: time.Hour, Fields: []string{}})
	if !slices.Equal(strict.Key.Forms, []string{"string"}) || strict.Key.Same || strict.Fingerprint.Body != "json" {
		t.Errorf("strict: %+v", strict)
	}
	longest := declared(t, options(), semelhttp.Terms{Retention: math.MaxInt64, Wait: math.MaxInt64})
	if longest.RetentionSeconds != 9223372036 || longest.WaitSeconds != 9223372037 {
		t.Errorf("the longest: %+v", longest)
	}
}

// TestDeclarationOfEndpoints: behind Handle every method is protected, and no
// status from 500 up is stored, in any profile.
func TestDeclarationOfEndpoints(t *testing.T) {
	t.Parallel()
	methods := []string{"POST", "DELETE", "GET"}
	for _, p := range []semelhttp.Profile{semelhttp.Lenient, semelhttp.Stripe} {
		d := declared(t, profiled(p), semelhttp.Terms{Retention: time.Hour, Value: true, Methods: methods})
		if d.Fingerprint.Body != "value" || !slices.Equal(d.Fingerprint.Covers, []string{"method", "target", "body"}) {
			t.Errorf("%v: the fingerprint is %+v", p, d.Fingerprint)
		}
		if d.ServerErrors != "certain" || !slices.Equal(d.Methods, methods) {
			t.Errorf("%v: a 5xx is %s, and the methods are %v", p, d.ServerErrors, d.Methods)
		}
	}
}

// TestServerObeysItsDeclaration: a server with the same options sends the declared
// errors.
func TestServerObeysItsDeclaration(t *testing.T) {
	t.Parallel()
	for _, p := range []semelhttp.Profile{semelhttp.Lenient, semelhttp.Strict, semelhttp.Stripe} {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		o := profiled(p)
		d := declared(t, o, semelhttp.Terms{Retention: time.Hour})
		srv := b.atomicServer(t, define("op", plain{}), o, created(n))
		key := []string{`"k"`}
		_ = testRequest{key: key}.do(t, srv)
		for code, a := range map[string]testRequest{
			"key_missing":     {key: []string{}},
			"key_malformed":   {key: []string{""}},
			"key_reused":      {key: key, body: "other"},
			"unauthenticated": {key: key, user: "-"},
		} {
			if got := a.do(t, srv); got.status != d.Statuses[code] {
				t.Errorf("%v: %s is %d, declared as %d", p, code, got.status, d.Statuses[code])
			}
		}
		if got := (testRequest{key: key}).do(t, srv); got.header.Get(d.ReplayHeader) != d.ReplayValue {
			t.Errorf("%v: the replay is not marked as declared: %v", p, got.header)
		}
	}
}

func TestTermsNameTheField(t *testing.T) {
	t.Parallel()
	for field, terms := range map[string]semelhttp.Terms{
		"Retention": {Retention: time.Second - 1},
		"Wait":      {Retention: time.Hour, Wait: -1},
		"KeyTime":   {Retention: time.Hour, KeyTime: "uuidv4"},
		"Fields":    {Retention: time.Hour, Value: true, Fields: []string{"a"}},
	} {
		_, err := semelhttp.Declare(options(), terms)
		if f, ok := errtype.Find[*semel.FieldError](err); !ok || f.Field != field {
			t.Errorf("Declare with a wrong %s: %v", field, err)
		}
	}
	if _, err := semelhttp.Declare(semelhttp.Options{}, semelhttp.Terms{Retention: time.Hour}); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("Declare with options that no middleware takes: %v", err)
	}
}
