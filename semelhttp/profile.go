package semelhttp

import (
	"net/http"
	"strconv"

	"github.com/semelgo/semel/semelhttp/internal/wire"
)

// Profile is the set of conventions that an API's clients know: the form of the
// key, the format of errors, and whether a response from 500 up is an answer. The
// protocol is the same in all of them.
//
// Do not change the profile of an API in use: the header "k7", quotes included, is
// the key k7 in Lenient and Strict and another key in Stripe, so a request that is
// retried across the change runs a second time. Give the operations other names and
// routes, or wait for one retention without requests.
type Profile uint8

const (
	// Lenient accepts a key quoted ("abc") or raw (abc), and both are the same key.
	// Parameters of the quoted form and whitespace around either are ignored; a key with
	// a comma must be quoted. Errors are problems of RFC 9457. It is the default.
	Lenient Profile = iota
	// Strict accepts the key only as draft-ietf-httpapi-idempotency-key-header-07
	// defines it, as one structured string ("abc"): a raw key is 400 key_malformed.
	// Otherwise it is Lenient.
	Strict
	// Stripe follows version 1 of that vendor's API, so that its clients work:
	//   - a key is the header line as it is, quotes included;
	//   - DELETE ignores the key, as GET does;
	//   - errors are written as {"error":{"type","code","message"}};
	//   - a key that was used for another request is 400, type idempotency_error; one
	//     that is being used is 409 idempotency_key_in_use;
	//   - a response from 500 up is stored and replayed like any other, after the
	//     handler has returned. Behind [Atomic] its writes are rolled back and the key
	//     has failed for good. Behind [Middleware] the record is Succeeded, which then
	//     means that the handler has responded, and not that it had its effect: the
	//     effect is unknown, and the operation does not run again.
	//
	// A panic is no response: nothing of it is stored.
	Stripe
)

// String returns the profile's name.
func (p Profile) String() string {
	if d, ok := p.rules(); ok {
		return d.name
	}
	return "Profile(" + strconv.Itoa(int(p)) + ")"
}

// profileRules are the rules of a Profile.
type profileRules struct {
	name  string
	forms []string // of a key, as a Declaration names them: "string" is one structured string, "raw" the line as it is
	parse func(line string) (key, reason string)
	// statuses of this package's own problems, if they are not the usual ones.
	statuses map[string]int
	// errors is the format of problems, as a Declaration names it.
	errors string
	format func(p Problem) Response
}

// rules returns the rules of p, and whether there is such a profile.
func (p Profile) rules() (rules profileRules, known bool) {
	rules, known = map[Profile]profileRules{
		Lenient: {name: "lenient", forms: []string{"string", "raw"}, parse: wire.ParseKey, errors: "problem", format: inRFC9457},
		Strict:  {name: "strict", forms: []string{"string"}, parse: wire.ParseString, errors: "problem", format: inRFC9457},
		Stripe: {
			name: "stripe", forms: []string{"raw"}, parse: wire.ParseRaw, errors: "stripe", format: inStripe,
			statuses: map[string]int{codeKeyReused: http.StatusBadRequest},
		},
	}[p]
	return rules, known
}

// ignores reports whether requests of that method run without a key.
func (p Profile) ignores(method string) bool {
	return wire.Safe(method) || p == Stripe && method == http.MethodDelete
}
