package conform

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// ParseEndpoint parses the parts of an endpoint from a command line: the method
// and the path, as in "POST /orders"; the body with {{op}} and {{n}}; and the
// place where effects are counted, as in "/orders?item={{op}}#/total", with a
// JSON pointer after the "#". count may be empty.
func ParseEndpoint(target, body, count string) (*Endpoint, error) {
	method, path, found := strings.Cut(strings.TrimSpace(target), " ")
	if !found {
		method, path = http.MethodPost, target
	}
	e := &Endpoint{Method: method, URL: strings.TrimSpace(path), Body: body}
	e.Counter.URL, e.Counter.Pointer, _ = strings.Cut(count, "#")
	switch {
	case body == "" && !strings.Contains(path, "{{n}}"):
		return nil, errors.New(`the body is missing; use --body, for example '{"item":"{{op}}","amount":{{n}}}'`)
	case !strings.Contains(path+body, "{{op}}"):
		return nil, errors.New("neither --endpoint nor --body has {{op}}: put it in place of a name that the caller chooses")
	case !strings.Contains(path+body, "{{n}}"):
		return nil, errors.New("neither --endpoint nor --body has {{n}}: put it in place of a number that makes the request a different one")
	case count != "" && e.Counter.URL == "":
		return nil, errors.New("--count has no path")
	}
	return e, e.valid()
}

// ParsePrincipal parses a principal from header lines such as "Authorization:
// Bearer x".
func ParsePrincipal(lines []string) (map[string]string, error) {
	p := make(map[string]string, len(lines))
	for _, l := range lines {
		name, value, found := strings.Cut(l, ":")
		if !found || strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("header %q: want a name, a colon and a value", l)
		}
		p[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return p, nil
}
