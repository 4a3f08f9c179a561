package conform

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Suite configures how the cases use a server. With the zero value the server
// implements the required parts of the fixture contract, and its principals
// send the bearer tokens a and b.
type Suite struct {
	// Endpoint replaces the fixture contract's endpoint. Nil means that the
	// server implements the contract.
	Endpoint *Endpoint `json:"endpoint,omitempty"`
	// Principals are the headers that identify principals A and B. A ${NAME} in
	// a value is replaced by that environment variable. An endpoint without any
	// has no principals.
	Principals []map[string]string `json:"principals,omitempty"`
	// Offers are the optional parts of the fixture contract that the server
	// implements.
	Offers []string `json:"offers,omitempty"`
}

// Endpoint is a server's own endpoint. In its texts {{op}} is replaced by a
// name that no other case uses, and {{n}} by 1, or by 2 for a different
// request.
type Endpoint struct {
	// Method of the request. Empty means POST.
	Method string `json:"method,omitempty"`
	// URL is the path of requests, below the server's URL. It begins with a
	// slash.
	URL string `json:"url"`
	// ContentType of the body. Empty means application/json.
	ContentType string `json:"content_type,omitempty"`
	// Body is the body of requests.
	Body string `json:"body"`
	// Counter names where effects are counted. Without a URL a second run is
	// detected only if its answer differs from the first, for example by
	// another number.
	Counter Counter `json:"counter,omitzero"`
}

// Counter names where the effects of {{op}} are counted.
type Counter struct {
	// URL is read with GET, as the principal whose effects are counted.
	URL string `json:"url"`
	// Pointer is the JSON pointer to a number, or to an array whose elements
	// are counted.
	Pointer string `json:"pointer"`
	// Match is the JSON pointer, within an element, to a text that contains
	// {{op}}. Empty means that all elements count.
	Match string `json:"match,omitempty"`
	// PerPrincipal means that each principal sees only its own effects.
	PerPrincipal bool `json:"per_principal,omitempty"`
}

// The optional parts of the fixture contract. A server's own endpoint has none
// of them.
const (
	offerFixture = "fixture" // the required parts of the contract
	offerBarrier = "barrier"
	offerClock   = "clock"
	offerCrash   = "crash"
	offerStore   = "store"
	offerPermit  = "permit"
)

func (s *Suite) valid() error {
	for _, o := range s.Offers {
		if !slices.Contains([]string{offerBarrier, offerClock, offerCrash, offerStore, offerPermit}, o) {
			return fmt.Errorf("suite.offers has %q, which is not a part of the fixture contract", o)
		}
	}
	if s.Endpoint == nil {
		return nil
	}
	if len(s.Offers) > 0 {
		return errors.New("suite.offers is for servers of the fixture contract; suite.endpoint is set")
	}
	return s.Endpoint.valid()
}

func (e *Endpoint) valid() error {
	switch {
	case !strings.HasPrefix(e.URL, "/"):
		return errors.New("suite.endpoint.url must begin with a slash: it is relative to the URL of the server")
	case !strings.Contains(e.URL+e.Body, "{{op}}"):
		return errors.New("suite.endpoint.body has no {{op}}, so the effects of different cases could not be distinguished")
	case !strings.Contains(e.URL+e.Body, "{{n}}"):
		return errors.New("suite.endpoint.body has no {{n}}, so there would be no different request")
	case e.Counter.URL == "" && e.Counter != Counter{}:
		return errors.New("suite.endpoint.counter.url is empty, but other members of the counter are set")
	case e.Counter.URL != "" && !strings.HasPrefix(e.Counter.URL, "/"):
		return errors.New("suite.endpoint.counter.url must begin with a slash")
	case !jsontext.Pointer(e.Counter.Pointer).IsValid():
		return errors.New("suite.endpoint.counter.pointer is not a JSON pointer")
	case !jsontext.Pointer(e.Counter.Match).IsValid():
		return errors.New("suite.endpoint.counter.match is not a JSON pointer")
	default:
		return nil
	}
}

// offers reports whether the server offers that part.
func (s *Suite) offers(part string) bool {
	if s.Endpoint != nil {
		return false
	}
	return part == offerFixture || slices.Contains(s.Offers, part)
}

// counts reports whether the server has a counter of effects.
func (s *Suite) counts() bool { return s.counter().URL != "" }

// counter returns where effects are counted.
func (s *Suite) counter() Counter {
	if s.Endpoint != nil {
		return s.Endpoint.Counter
	}
	return Counter{URL: "/effects/{{op}}", Pointer: "/count"}
}

// headers returns the headers that identify principal.
func (s *Suite) headers(principal string) map[string]string {
	all := s.Principals
	if all == nil && s.Endpoint == nil {
		all = []map[string]string{{"Authorization": "Bearer a"}, {"Authorization": "Bearer b"}}
	}
	i := slices.Index([]string{principalA, principalB}, principal)
	if i < 0 || i >= len(all) {
		return nil
	}
	out := make(map[string]string, len(all[i]))
	for name, value := range all[i] {
		out[http.CanonicalHeaderKey(name)] = os.ExpandEnv(value)
	}
	return out
}

// principals returns the number of principals.
func (s *Suite) principals() int {
	if s.Principals == nil && s.Endpoint == nil {
		return 2
	}
	return len(s.Principals)
}

// The principals.
const (
	principalA  = "A"
	principalB  = "B"
	noPrincipal = "-"
)
