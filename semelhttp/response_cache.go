package semelhttp

import (
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
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
	engine semel.Runner
	seed   maphash.Seed
	slots  [cacheSlots]atomic.Pointer[cachedResponse] // a later entry replaces an earlier one
}

type cachedResponse struct {
	scope    semel.Scope
	key      string
	input    Request
	outcome  *adapter.CachedOutcome
	response Response
}

// slot returns the slot of a key. All scopes share it.
func (c *responseCache) slot(key string) *atomic.Pointer[cachedResponse] {
	return &c.slots[maphash.String(c.seed, key)%cacheSlots]
}

// find returns the cached response to a request, or nil if there is no valid one.
func (c *responseCache) find(ctx context.Context, in *checkedRequest, input *Request) *Response {
	k := c.slot(in.key).Load()
	if k == nil || k.key != in.key || k.scope != in.scope || !k.input.equals(input) || !k.outcome.Valid(ctx) {
		return nil
	}
	return &k.response
}

// put caches the stored response to a request whose handler was not run: it could have
// changed the request.
func (c *responseCache) put(in *checkedRequest, input Request, out *adapter.Outcome, response Response) {
	if outcome := adapter.Cached(c.engine, out); outcome != nil {
		input.Body = slices.Clone(in.body)
		c.slot(in.key).Store(&cachedResponse{in.scope, in.key, input, outcome, response})
	}
}

// equals reports whether r and other are the same request.
func (r *Request) equals(other *Request) bool {
	return r.Method == other.Method && r.Path == other.Path && r.Query == other.Query && r.MediaType == other.MediaType &&
		string(r.Body) == string(other.Body) && maps.EqualFunc(r.Headers, other.Headers, slices.Equal)
}
