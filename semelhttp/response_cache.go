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

// responseCache has the responses to requests that were answered from the record. It
// compares requests byte for byte, where the engine computes two digests. The engine
// says whether a cached outcome is still valid; without semel.Options.CacheBytes
// nothing is cached.
type responseCache struct {
	engine interface {
		Cached(out *semel.Outcome) *semel.CachedOutcome
	}
	seed  maphash.Seed
	slots [cacheSlots]atomic.Pointer[cachedResponse] // a later entry replaces an earlier one
}

type cachedResponse struct {
	scope    semel.Scope
	key      string
	input    Request
	outcome  *semel.CachedOutcome
	response Response
}

func newResponseCache(e semel.Runner) *responseCache {
	c := &responseCache{seed: maphash.MakeSeed()}
	c.engine, _ = e.(interface {
		Cached(out *semel.Outcome) *semel.CachedOutcome
	})
	return c
}

// slot returns the slot of a key. All scopes share it.
func (c *responseCache) slot(key string) *atomic.Pointer[cachedResponse] {
	return &c.slots[maphash.String(c.seed, key)%cacheSlots]
}

// send sends the cached response to x, and reports whether there is a valid one.
func (c *responseCache) send(x *exchange) bool {
	k := c.slot(x.in.key).Load()
	if k == nil || k.key != x.in.key || k.scope != x.in.scope || !k.input.equals(&x.input) || !k.outcome.Valid(x.r.Context()) {
		return false
	}
	if err := x.reauthorize(x.r, &x.in, true, nil); err != nil {
		x.settings.refuse(x.w, x.r, err)
		return true
	}
	h := x.w.Header()
	for name, values := range k.response.Header {
		h[name] = slices.Clone(values) // the receiver of a response may change them
	}
	x.write(&k.response, true)
	return true
}

// put caches the stored response to x. Its handler was not run: it could have changed
// the request.
func (c *responseCache) put(x *exchange, out *semel.Outcome) {
	if c.engine == nil || len(x.in.body)+len(x.replay) > maxCached {
		return
	}
	outcome := c.engine.Cached(out)
	if outcome == nil {
		return
	}
	response, err := parse(x.replay, make(http.Header), x.keep)
	if err != nil {
		return
	}
	k := &cachedResponse{scope: x.in.scope, key: x.in.key, input: x.input, outcome: outcome, response: response}
	k.input.Body = slices.Clone(x.in.body)
	c.slot(k.key).Store(k)
}

// equals reports whether r and other are the same request.
func (r *Request) equals(other *Request) bool {
	return r.Method == other.Method && r.Path == other.Path && r.Query == other.Query && r.MediaType == other.MediaType &&
		string(r.Body) == string(other.Body) && maps.EqualFunc(r.Headers, other.Headers, slices.Equal)
}
