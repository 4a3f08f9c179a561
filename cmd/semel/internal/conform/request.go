package conform

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// script tells the fixture how to answer after the effect.
type script struct {
	DelayMS   int               `json:"delay_ms,omitempty"`
	Status    int               `json:"status,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	BodyBytes int               `json:"body_bytes,omitempty"`
	Fail      string            `json:"fail,omitempty"`
	Once      bool              `json:"once,omitempty"`
}

// Values of a script's Fail: where the request fails.
const (
	failBefore = "before"
	failAfter  = "after_effect"
	failPanic  = "panic"
)

// request is one request for an effect. The zero value with a key and an op is
// an ordinary request of principal A.
type request struct {
	principal string   // empty: A
	method    string   // empty: the profile's usual method
	resource  string   // empty: /ops; otherwise /ops/{resource}
	query     string   // with its question mark
	keys      []string // values of key header lines, byte for byte
	name      string   // of the key header; empty: the profile's
	op        string
	n         int // zero: 1
	script    *script
	body      []byte // replaces the body made of op, n and script
	media     string // Content-Type; empty: the usual one
	more      []line
	chunked   bool
}

// withKeys returns a with other key lines.
func (a request) withKeys(keys ...string) request {
	a.keys = keys
	return a
}

// withOtherPayload returns a with another payload.
func (a request) withOtherPayload() request {
	a.n, a.body = 2, nil
	return a
}

// asPrincipal returns a from another principal.
func (a request) asPrincipal(principal string) request {
	a.principal = principal
	return a
}

// message returns a as it is sent.
func (s *session) message(a request) message {
	m := message{method: a.method, path: "/ops", body: a.body, chunked: a.chunked}
	media := "application/json"
	if e := s.profile.Suite.Endpoint; e != nil {
		m.path, m.method = expand(e.URL, a), orDefault(m.method, orDefault(e.Method, http.MethodPost))
		media = orDefault(e.ContentType, media)
	}
	if a.resource != "" {
		m.path += "/" + a.resource
	}
	m.path += a.query
	m.method = orDefault(m.method, http.MethodPost)
	if m.body == nil && m.method != http.MethodGet {
		m.body = s.body(a)
	}
	m.lines = s.principalLines(a.principal)
	if m.body != nil {
		m.lines = append(m.lines, line{"Content-Type", orDefault(a.media, media)})
	}
	m.lines = append(m.lines, a.more...)
	for _, k := range a.keys {
		m.lines = append(m.lines, line{orDefault(a.name, s.profile.Header), k})
	}
	return m
}

// body returns the body of a.
func (s *session) body(a request) []byte {
	if e := s.profile.Suite.Endpoint; e != nil {
		return []byte(expand(e.Body, a))
	}
	b, err := json.Marshal(struct {
		Op     string  `json:"op"`
		N      int     `json:"n"`
		Script *script `json:"script,omitempty"`
	}{a.op, max(a.n, 1), a.script})
	if err != nil { // not reachable: strings and numbers
		return nil
	}
	return b
}

// principalLines returns the header lines that identify principal.
func (s *session) principalLines(principal string) []line {
	headers := s.profile.Suite.headers(orDefault(principal, principalA))
	lines := make([]line, 0, len(headers))
	for name, value := range headers {
		lines = append(lines, line{name, value})
	}
	slices.SortFunc(lines, func(a, b line) int { return strings.Compare(a.name, b.name) })
	return lines
}

func expand(text string, a request) string {
	return strings.NewReplacer("{{op}}", a.op, "{{n}}", strconv.Itoa(max(a.n, 1))).Replace(text)
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
