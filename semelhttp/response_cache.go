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
	// cacheSlots is the largest number of responses that a middleware caches.
	cacheSlots = 1024
	// maxCached is the largest size of a cached request together with its response,
	// in bytes.
	maxCached = 16 << 10
)

// responseCache has requests that were answered from the record recently, with
// their responses. A request that arrives again, byte for byte, is neither digested
// nor looked up: it is the same request. The engine says whether the cached outcome
// is still valid, as long as its own options allow; without them nothing is cached.
type responseCache struct {
	engine  cachingEngine
	headers []string    // of Options.FingerprintHeaders
	used    atomic.Bool // there may be entries
	seed    maphash.Seed
	slots   []atomic.Pointer[cachedResponse] // a later entry replaces an earlier one
}

// cachingEngine is an engine that can have final records in memory.
type cachingEngine interface {
	Cached(o *semel.Outcome) *semel.CachedOutcome
}

func newRepeats(e semel.Runner, headers []string) *responseCache {
	p := &responseCache{headers: headers, seed: maphash.MakeSeed(), slots: make([]atomic.Pointer[cachedResponse], cacheSlots)}
	p.engine, _ = e.(cachingEngine)
	return p
}

// cachedResponse is a request and its response.
type cachedResponse struct {
	line  string // under which it is found: the key as it was received
	scope semel.Scope
	key   string

	method, path, query, contentType string
	headers                          map[string][]string
	body                             []byte

	stands *semel.CachedOutcome
	status int
	header []cachedField
	values []string
	text   []byte
}

// cachedField is a header field of a cached response. Its values are copied each
// time, because the receiver of a response may change them.
type cachedField struct {
	name     string
	from, to int // of the values; -1: there are none, and none are to be added
}

// slot returns the slot of a key that was received as line. All scopes share it.
func (p *responseCache) slot(line string) *atomic.Pointer[cachedResponse] {
	return &p.slots[maphash.String(p.seed, line)%cacheSlots]
}

// at returns the cached response of a key that was received as line, of any scope.
func (p *responseCache) at(line string) *cachedResponse {
	if p == nil || !p.used.Load() {
		return nil
	}
	if known := p.slot(line).Load(); known != nil && known.line == line {
		return known
	}
	return nil
}

// find returns the response to a request that was received before, if it may be
// sent.
func (p *responseCache) find(r *http.Request, in *validRequest) *cachedResponse {
	known := in.cached
	if known == nil || known.scope != in.scope || !known.same(r, in.body, p.headers) {
		return nil
	}
	if !known.stands.Valid(r.Context()) {
		return nil
	}
	return known
}

// same reports whether r, with that body, is the same request, in every part of a
// [Request].
func (k *cachedResponse) same(r *http.Request, body []byte, names []string) bool {
	path, query := target(r)
	if k.method != r.Method || k.path != path || k.query != query || k.contentType != contentType(r.Header) || string(k.body) != string(body) {
		return false
	}
	return len(names) == 0 || maps.EqualFunc(k.headers, headersOf(r, names), slices.Equal)
}

// keep caches the response of x, which came from the record.
func (p *responseCache) keep(x *exchange, out *semel.Outcome, raw semel.Raw) {
	if p.engine == nil || len(x.in.body)+len(raw) > maxCached {
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
	k := &cachedResponse{
		line: x.in.cacheKey(), scope: x.in.scope, key: x.in.key, stands: stands, status: a.status, text: a.body,
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

func (k *cachedResponse) add(name string, values []string) {
	s := cachedField{name, -1, -1}
	if values != nil {
		s.from, s.to = len(k.values), len(k.values)+len(values)
	}
	k.header, k.values = append(k.header, s), append(k.values, values...)
}

// write sends k. The values are for this response only.
func (k *cachedResponse) write(w http.ResponseWriter, values []string) {
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
	_, _ = w.Write(k.text) // a client that hung up retries
}
