package semelhttp

import (
	"net/http"
	"slices"
	"strconv"
)

// Profile is the set of conventions that an API's clients know: in which form
// the key comes, how errors are written, and whether a response from 500 up is
// an answer. What happens to a key is the same in all of them.
//
// Do not change the profile of an API that is in use: the header "k7", quotes
// included, is the key k7 in Lenient and Strict and another key in Stripe, so a
// request that is repeated across the change runs a second time. Give the
// operations other names and routes, or let a retention pass without requests.
type Profile uint8

const (
	// Lenient takes a key quoted ("abc") or raw (abc), and both are the same
	// key; see [ParseKey]. Errors are problems of RFC 9457. It is the default.
	Lenient Profile = iota
	// Strict takes the key as draft-ietf-httpapi-idempotency-key-header-07 has
	// it, as one structured string ("abc") and in no other form: a raw key is
	// 400 key_malformed. Otherwise it is Lenient.
	Strict
	// Stripe does as version 1 of that vendor's API, so that its clients work:
	//   - a key is the header line as it is, quotes included;
	//   - DELETE ignores the key, as GET does;
	//   - errors are written as {"error":{"type","code","message"}};
	//   - a key that was used for another request is 400, type
	//     idempotency_error; one that is being used is 409
	//     idempotency_key_in_use;
	//   - a response from 500 up is stored and replayed like any other, once
	//     the handler has run to its end. Behind [Atomic] its writes are rolled
	//     back and the key has failed for good. Behind [Middleware] the record
	//     is Succeeded, which then means that the handler has answered, and not
	//     that it had its effect: nobody knows, and it is not run again.
	//
	// A panic is no response: nothing of it is stored.
	Stripe
)

// String returns the profile's name.
func (p Profile) String() string {
	if d, ok := p.dialect(); ok {
		return d.name
	}
	return "Profile(" + strconv.Itoa(int(p)) + ")"
}

// dialect is what a Profile decides.
type dialect struct {
	name  string
	forms []string // of a key, as a Declaration names them
	parse func(line string) (string, error)
	// unkeyed are the methods, besides the safe ones, whose requests have no use
	// for a key.
	unkeyed []string
	// broken says that a response from 500 up is an answer like any other.
	broken bool
	// endpoints says that a key used at another endpoint is told from one used
	// with other parameters.
	endpoints bool
	// statuses of this package's own problems, where they are not the usual.
	statuses map[string]int
	// errors is how problems are written, as a Declaration names it.
	errors string
	write  func(w http.ResponseWriter, p *Problem)
}

// dialect returns what p decides, and whether there is such a profile.
func (p Profile) dialect() (dialect, bool) {
	common := dialect{
		name: "lenient", forms: []string{formString, formRaw}, parse: ParseKey,
		errors: errorsProblem, write: func(w http.ResponseWriter, p *Problem) { p.Write(w) },
	}
	switch p {
	case Lenient:
		return common, true
	case Strict:
		common.name, common.forms, common.parse = "strict", []string{formString}, parseString
		return common, true
	case Stripe:
		return dialect{
			name: "stripe", forms: []string{formRaw}, parse: parseRaw,
			unkeyed: []string{http.MethodDelete}, broken: true, endpoints: true,
			statuses: map[string]int{codeKeyReused: http.StatusBadRequest},
			errors:   errorsStripe, write: writeStripe,
		}, true
	default:
		return dialect{}, false
	}
}

// ignores reports whether requests of that method run without a key.
func (d *dialect) ignores(method string) bool {
	return safe(method) || slices.Contains(d.unkeyed, method)
}
