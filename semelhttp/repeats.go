package semelhttp

import (
	"hash/maphash"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/semelgo/semel"
)

const (
	// repeatSlots is how many answers a middleware remembers at most.
	repeatSlots = 1024
	// maxRepeat is how much a request and its answer have together at most to be
	// remembered, in bytes.
	maxRepeat = 16 << 10
)

// repeats are requests that were answered from the record a moment ago, with
// what they were answered. One that comes again, byte for byte, is neither
// digested nor looked up: it is the same request. Whether the answer still
// stands the engine says, which remembers it for as long as its own options
// allow; without them there are none.
type repeats struct {
	engine  rememberer
	headers []string    // of Options.FingerprintHeaders
	used    atomic.Bool // there may be some
	seed    maphash.Seed
	slots   []atomic.Pointer[repeat] // one that comes later takes its place
}

// rememberer is an engine that can have final records in memory.
type rememberer interface {
	Cached(o *semel.Outcome) *semel.CachedOutcome
}

func newRepeats(e semel.Runner, headers []string) *repeats {
	p := &repeats{headers: headers, seed: maphash.MakeSeed(), slots: make([]atomic.Pointer[repeat], repeatSlots)}
	p.engine, _ = e.(rememberer)
	return p
}

// repeat is a request and its answer.
type repeat struct {
	line  string // that it is found by: the key as it came
	scope semel.Scope
	key   string

	method, path, query, contentType string
	headers                          map[string][]string
	body                             []byte

	stands *semel.CachedOutcome
	status int
	header []span
	values []string
	text   []byte
}

// span is a field of a repeat's header. Its values are copied each time: who gets
// a response may write over them.
type span struct {
	name     string
	from, to int // of the values; -1: there are none, and none are to be added
}

// slot is where the answer to a key that came as line is remembered: one, whoever
// asked.
func (p *repeats) slot(line string) *atomic.Pointer[repeat] {
	return &p.slots[maphash.String(p.seed, line)%repeatSlots]
}

// at returns what is remembered of a key that came as line, for somebody.
func (p *repeats) at(line string) *repeat {
	if p == nil || !p.used.Load() {
		return nil
	}
	if known := p.slot(line).Load(); known != nil && known.line == line {
		return known
	}
	return nil
}

// find returns the answer to a request that has come before, if it may be told.
func (p *repeats) find(r *http.Request, in *admitted) *repeat {
	known := in.maybe
	if known == nil || known.scope != in.scope || !known.same(r, in.body, p.headers) {
		return nil
	}
	if !known.stands.Valid(r.Context()) {
		return nil
	}
	return known
}

// same reports whether r, with that body, is the request, in everything that a
// [Request] is made of.
func (k *repeat) same(r *http.Request, body []byte, names []string) bool {
	path, query := target(r)
	if k.method != r.Method || k.path != path || k.query != query || k.contentType != contentType(r.Header) || string(k.body) != string(body) {
		return false
	}
	return len(names) == 0 || maps.EqualFunc(k.headers, headersOf(r, names), slices.Equal)
}

// keep remembers what x was answered from the record.
func (p *repeats) keep(x *exchange, out *semel.Outcome, raw semel.Raw) {
	if p.engine == nil || len(x.in.body)+len(raw) > maxRepeat {
		return
	}
	stands := p.engine.Cached(out)
	if stands == nil {
		return
	}
	a, _, err := parse(raw, new(snapshot), x.s.keep)
	if err != nil {
		return
	}
	r := x.r
	k := &repeat{
		line: x.in.found(), scope: x.in.scope, key: x.in.key, stands: stands, status: a.status, text: a.body,
		method: r.Method, contentType: contentType(r.Header), body: slices.Clone(x.in.body),
	}
	k.path, k.query = target(r)
	if len(p.headers) > 0 {
		k.headers = headersOf(r, p.headers)
	}
	k.add(HeaderReplayed, []string{"true"})
	for _, f := range a.header {
		k.add(f.name, f.values)
	}
	if length := lengthOf(&a, false); length != nil {
		k.add(contentLength, length)
	}
	p.slot(k.line).Store(k)
	p.used.Store(true)
}

func (k *repeat) add(name string, values []string) {
	s := span{name, -1, -1}
	if values != nil {
		s.from, s.to = len(k.values), len(k.values)+len(values)
	}
	k.header, k.values = append(k.header, s), append(k.values, values...)
}

// write answers with k. The values are for the response alone.
func (k *repeat) write(w http.ResponseWriter, values []string) {
	h := w.Header()
	copy(values, k.values)
	if len(h) > 0 {
		delete(h, contentLength)
	}
	for i := range k.header {
		s := &k.header[i]
		if s.from < 0 {
			h[s.name] = nil
			continue
		}
		h[s.name] = values[s.from:s.to:s.to]
	}
	w.WriteHeader(k.status)
	_, _ = w.Write(k.text) // a client that is gone asks again
}
