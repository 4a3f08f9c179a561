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

// Suite says how a server is reached by the cases. The zero value: it follows
// the fixture contract, of which it offers the least, and its principals send
// the bearer tokens a and b.
type Suite struct {
	// Endpoint is what is asked instead of the fixture contract's. Nil: the
	// server follows the contract.
	Endpoint *Endpoint `json:"endpoint,omitempty"`
	// Principals are the headers that say who is asking: of A, and of B. A
	// ${NAME} in a value stands for that environment variable. An endpoint
	// without any has no principals.
	Principals []map[string]string `json:"principals,omitempty"`
	// Offers are the parts of the fixture contract that are there besides
	// those it asks for.
	Offers []string `json:"offers,omitempty"`
}

// Endpoint is an endpoint of somebody's own. In its texts {{op}} stands for a
// name that no other case uses, and {{n}} for 1, or for 2 in a request that is
// to be another one.
type Endpoint struct {
	// Method of the request. Empty: POST.
	Method string `json:"method,omitempty"`
	// URL is where requests go, below the server's own. It begins with a slash.
	URL string `json:"url"`
	// ContentType of the body. Empty: application/json.
	ContentType string `json:"content_type,omitempty"`
	// Body is the body.
	Body string `json:"body"`
	// Counter says how often it happened. Without its URL a second run is seen only where
	// it is answered otherwise than the first, with another number for instance.
	Counter Counter `json:"counter,omitzero"`
}

// Counter is where the effects of {{op}} can be counted.
type Counter struct {
	// URL is asked with GET, as the principal whose effects are counted.
	URL string `json:"url"`
	// Pointer is the JSON pointer to a number, or to an array whose elements
	// are counted.
	Pointer string `json:"pointer"`
	// Match is the JSON pointer, within an element, to the text that has {{op}}
	// in it. Empty: all elements count.
	Match string `json:"match,omitempty"`
	// PerPrincipal says that each sees its own effects alone.
	PerPrincipal bool `json:"per_principal,omitempty"`
}

// The parts of the fixture contract that a server may leave out. Those of an
// endpoint are none.
const (
	offerFixture = "fixture" // all that the contract asks for
	offerBarrier = "barrier"
	offerClock   = "clock"
	offerCrash   = "crash"
	offerStore   = "store"
	offerPermit  = "permit"
)

func (s *Suite) valid() error {
	for _, o := range s.Offers {
		if !slices.Contains([]string{offerBarrier, offerClock, offerCrash, offerStore, offerPermit}, o) {
			return fmt.Errorf("suite.offers has %q, which is no part of the fixture contract", o)
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
		return errors.New("suite.endpoint.url must begin with a slash: it is below the URL that is given to the suite")
	case !strings.Contains(e.URL+e.Body, "{{op}}"):
		return errors.New("suite.endpoint.body has no {{op}}, so the effects of one case could not be told from those of another")
	case !strings.Contains(e.URL+e.Body, "{{n}}"):
		return errors.New("suite.endpoint.body has no {{n}}, so there would be no other request")
	case e.Counter.URL == "" && e.Counter != Counter{}:
		return errors.New("suite.endpoint.counter.url is empty, and other members of the counter are set")
	case e.Counter.URL != "" && !strings.HasPrefix(e.Counter.URL, "/"):
		return errors.New("suite.endpoint.counter.url must begin with a slash")
	case !jsontext.Pointer(e.Counter.Pointer).IsValid():
		return errors.New("suite.endpoint.counter.pointer is no JSON pointer")
	case !jsontext.Pointer(e.Counter.Match).IsValid():
		return errors.New("suite.endpoint.counter.match is no JSON pointer")
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

// counts reports whether the server says how often something happened.
func (s *Suite) counts() bool { return s.counter().URL != "" }

// counter is where effects are counted.
func (s *Suite) counter() Counter {
	if s.Endpoint != nil {
		return s.Endpoint.Counter
	}
	return Counter{URL: "/effects/{{op}}", Pointer: "/count"}
}

// headers returns what principal sends to say who it is.
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

// principals is how many principals are known.
func (s *Suite) principals() int {
	if s.Principals == nil && s.Endpoint == nil {
		return 2
	}
	return len(s.Principals)
}

// The principals that ask.
const (
	principalA  = "A"
	principalB  = "B"
	noPrincipal = "-"
)
