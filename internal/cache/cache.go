// Package cache keeps final records in memory.
package cache

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/store"
)

// Cache keeps final records in memory, so that retries are answered without
// the store. A final record changes only when it is purged, or when an operator
// redrives it. Another process may do that, so entries expire after CacheAge.
type Cache struct {
	age    time.Duration
	shards []shard
	ahead  time.Duration // time by which Advance moved the clock
}

const (
	shardCount = 16
	// entryExtra is the estimated memory of an entry beside its bytes.
	entryExtra = 400
	// maxFingerprint is the size of the largest fingerprint in use.
	maxFingerprint = 32
)

// New returns a cache of at most so many bytes, whose entries expire after age. Zero
// bytes: it keeps nothing.
func New(bytes int, age time.Duration) Cache {
	if bytes == 0 {
		return Cache{}
	}
	r := Cache{age: age, shards: make([]shard, shardCount)}
	for i := range r.shards {
		r.shards[i].room = bytes / shardCount
		r.shards[i].kept = make(map[store.ID]*Entry)
	}
	return r
}

// shardOf uses the end of the ID, because an ID may begin with a time.
func (r *Cache) shardOf(id store.ID) *shard { return &r.shards[id[len(id)-1]%shardCount] }

// Get returns a final record that was current a moment ago, and its entry; nil: there is
// none.
func (r *Cache) Get(id store.ID) (store.Record, *Entry) {
	if len(r.shards) == 0 {
		return store.Record{}, nil
	}
	s := r.shardOf(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept[id]
	if !k.IsValid() {
		return store.Record{}, nil
	}
	return k.record, k
}

// Put caches a final record. asked is the time before the record was read, from
// which its age counts.
func (r *Cache) Put(current *store.Record, asked time.Time) {
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
	k := &Entry{record: *current, until: asked.Add(age - r.ahead), size: sizeOf(current)}
	k.record.Fingerprint = append(k.print[:0], current.Fingerprint...) // the buffer of the store may be large
	k.record.Outcome = slices.Clone(current.Outcome)
	r.shardOf(current.ID).put(k)
}

// Now returns the time, if caching is on.
func (r *Cache) Now() time.Time {
	if len(r.shards) == 0 {
		return time.Time{}
	}
	return clock.Now().Add(r.ahead)
}

// Advance moves the clock of the cache, for cached entries and for reads that are
// in flight. It is for the explorer.
func (r *Cache) Advance(by time.Duration) {
	r.ahead += by
	for i := range r.shards {
		for _, k := range r.shards[i].kept {
			k.until = k.until.Add(-by)
		}
	}
}

// Drop removes a record.
func (r *Cache) Drop(id store.ID) {
	if len(r.shards) > 0 {
		s := r.shardOf(id)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drop(id)
	}
}

// Clear removes all records.
func (r *Cache) Clear() {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		for _, k := range s.kept {
			k.gone.Store(true)
		}
		clear(s.kept)
		s.order, s.used = nil, 0
		s.mu.Unlock()
	}
}

func sizeOf(r *store.Record) int {
	return entryExtra + len(r.Operation) + len(r.Scope) + len(r.Key) + len(r.Fingerprint) + len(r.Input) + len(r.Outcome)
}

// shard is a part of the cache. The oldest entry is evicted first, unless it
// was used since.
type shard struct {
	room int

	mu    sync.Mutex
	kept  map[store.ID]*Entry
	order []*Entry // oldest first; some may be dropped
	used  int      // bytes
}

// Entry is a cached record. Its holder can check without the lock whether it
// is still valid. The record is read under the lock.
type Entry struct {
	record store.Record
	until  time.Time
	size   int
	used   atomic.Bool // used since the last eviction pass
	gone   atomic.Bool
	print  [maxFingerprint]byte // memory of the record's fingerprint, if it is not longer
}

// IsValid reports whether k is still in the cache, and marks it as used.
func (k *Entry) IsValid() bool {
	if k == nil || k.gone.Load() || clock.Until(k.until) <= 0 {
		return false
	}
	if !k.used.Load() { // an unnecessary write would slow other processors down
		k.used.Store(true)
	}
	return true
}

func (s *shard) put(k *Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.size > s.room {
		return
	}
	s.drop(k.record.ID)
	for s.used+k.size > s.room {
		s.makeRoom()
	}
	s.kept[k.record.ID] = k
	s.order = append(s.order, k)
	s.used += k.size
}

// makeRoom evicts the oldest entry, or keeps it if it was used.
func (s *shard) makeRoom() {
	first := s.order[0]
	s.order = s.order[1:]
	switch {
	case first.gone.Load():
	case first.used.Load() && clock.Until(first.until) > 0:
		first.used.Store(false)
		s.order = append(s.order, first)
	default:
		s.remove(first)
	}
}

// drop removes a record. mu is locked.
func (s *shard) drop(id store.ID) {
	k := s.kept[id]
	if k == nil {
		return
	}
	s.remove(k)
	if len(s.order) > 2*len(s.kept)+shardCount {
		s.order = slices.DeleteFunc(s.order, func(k *Entry) bool { return k.gone.Load() })
	}
}

// remove evicts k. Its bytes are no longer counted, although k may still be in
// order.
func (s *shard) remove(k *Entry) {
	delete(s.kept, k.record.ID)
	s.used -= k.size
	k.gone.Store(true)
	k.record = store.Record{}
}
