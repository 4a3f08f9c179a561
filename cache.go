package semel

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/store"
)

// outcomeCache keeps final records in memory, so that retries are answered without
// the store. A final record changes only when it is purged, or when an operator
// redrives it. Another process may do that, so entries expire after CacheAge.
type outcomeCache struct {
	age    time.Duration
	shards []cacheShard
	ahead  time.Duration // time by which advance moved the clock
}

const (
	cacheShards = 16
	// replayExtra is the estimated memory of an entry beside its bytes.
	replayExtra = 400
)

func newOutcomeCache(o *Options) outcomeCache {
	if o.CacheBytes == 0 {
		return outcomeCache{}
	}
	r := outcomeCache{age: o.CacheAge, shards: make([]cacheShard, cacheShards)}
	for i := range r.shards {
		r.shards[i].room = o.CacheBytes / cacheShards
		r.shards[i].kept = make(map[store.ID]*cacheEntry)
	}
	return r
}

// shard uses the end of the ID, because an ID may begin with a time.
func (r *outcomeCache) shard(id store.ID) *cacheShard { return &r.shards[id[len(id)-1]%cacheShards] }

// get returns a final record that was current a moment ago.
func (r *outcomeCache) get(id store.ID) (store.Record, bool) {
	if len(r.shards) == 0 {
		return store.Record{}, false
	}
	return r.shard(id).get(id)
}

// lookup returns the entry that get would return, if it has the token.
func (r *outcomeCache) lookup(id store.ID, token store.Token) *cacheEntry {
	if len(r.shards) == 0 {
		return nil
	}
	return r.shard(id).lookup(id, token)
}

// put caches a final record. asked is the time before the record was read, from
// which its age counts.
func (r *outcomeCache) put(current *store.Record, asked time.Time) {
	if len(r.shards) == 0 || !current.State.Final() {
		return
	}
	age := r.age
	switch {
	case current.Expire < 0:
		return
	case current.Expire > 0:
		age = min(age, current.Expire)
	}
	k := &cacheEntry{record: *current, until: asked.Add(age - r.ahead), size: sizeOf(current)}
	k.record.Fingerprint = append(k.print[:0], current.Fingerprint...) // the buffer of the store may be large
	k.record.Outcome = slices.Clone(current.Outcome)
	r.shard(current.ID).put(k)
}

// clock returns the time, if caching is on.
func (r *outcomeCache) clock() time.Time {
	if len(r.shards) == 0 {
		return time.Time{}
	}
	return now().Add(r.ahead)
}

// advance moves the clock of the cache, for cached entries and for reads that are
// in flight. It is for the explorer.
func (r *outcomeCache) advance(by time.Duration) {
	r.ahead += by
	for i := range r.shards {
		for _, k := range r.shards[i].kept {
			k.until = k.until.Add(-by)
		}
	}
}

// drop removes a record.
func (r *outcomeCache) drop(id store.ID) {
	if len(r.shards) > 0 {
		r.shard(id).drop(id)
	}
}

// clear removes all records.
func (r *outcomeCache) clear() {
	for i := range r.shards {
		r.shards[i].clear()
	}
}

func sizeOf(r *store.Record) int {
	return replayExtra + len(r.Operation) + len(r.Scope) + len(r.Key) + len(r.Fingerprint) + len(r.Input) + len(r.Outcome)
}

// cacheShard is a part of the cache. The oldest entry is evicted first, unless it
// was used since.
type cacheShard struct {
	room int

	mu    sync.Mutex
	kept  map[store.ID]*cacheEntry
	order []*cacheEntry // oldest first; some may be dropped
	used  int           // bytes
}

// cacheEntry is a cached record. Its holder can check without the lock whether it
// is still valid. The record is read under the lock.
type cacheEntry struct {
	record store.Record
	until  time.Time
	size   int
	used   atomic.Bool // used since the last eviction pass
	gone   atomic.Bool
	print  fingerprint // memory of the record's fingerprint
}

// isValid reports whether k is still in the cache, and marks it as used.
func (k *cacheEntry) isValid() bool {
	if k == nil || k.gone.Load() || until(k.until) <= 0 {
		return false
	}
	if !k.used.Load() { // an unnecessary write would slow other processors down
		k.used.Store(true)
	}
	return true
}

func (s *cacheShard) get(id store.ID) (store.Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept[id]
	if !k.isValid() {
		return store.Record{}, false
	}
	return k.record, true
}

func (s *cacheShard) lookup(id store.ID, token store.Token) *cacheEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept[id]
	if k == nil || k.record.Token != token || !k.isValid() {
		return nil
	}
	return k
}

func (s *cacheShard) put(k *cacheEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.size > s.room {
		return
	}
	s.dropLocked(k.record.ID)
	for s.used+k.size > s.room {
		s.makeRoom()
	}
	s.kept[k.record.ID] = k
	s.order = append(s.order, k)
	s.used += k.size
}

// makeRoom evicts the oldest entry, or keeps it if it was used.
func (s *cacheShard) makeRoom() {
	first := s.order[0]
	s.order = s.order[1:]
	switch {
	case first.gone.Load():
	case first.used.Load() && until(first.until) > 0:
		first.used.Store(false)
		s.order = append(s.order, first)
	default:
		s.remove(first)
	}
}

func (s *cacheShard) drop(id store.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked(id)
}

func (s *cacheShard) dropLocked(id store.ID) {
	k := s.kept[id]
	if k == nil {
		return
	}
	s.remove(k)
	if len(s.order) > 2*len(s.kept)+cacheShards {
		s.order = slices.DeleteFunc(s.order, func(k *cacheEntry) bool { return k.gone.Load() })
	}
}

// remove evicts k. Its bytes are no longer counted, although k may still be in
// order.
func (s *cacheShard) remove(k *cacheEntry) {
	delete(s.kept, k.record.ID)
	s.used -= k.size
	k.gone.Store(true)
	k.record = store.Record{}
}

func (s *cacheShard) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kept {
		k.gone.Store(true)
	}
	clear(s.kept)
	s.order, s.used = nil, 0
}
