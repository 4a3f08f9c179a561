package semel

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/store"
)

// replays keeps final records in memory, so that repeats are answered without the
// store. What is final changes only when its record goes, or when a person sends a
// failure round again; that this may have happened elsewhere is why nothing is
// kept for longer than its age.
type outcomeCache struct {
	age    time.Duration
	shards []cacheShard
	ahead  time.Duration // of the clock: what older was told
}

const (
	cacheShards = 16
	// replayExtra is reckoned for a record beside its bytes.
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

// shard goes by the end of an ID: it may begin with a time.
func (r *outcomeCache) shard(id store.ID) *cacheShard { return &r.shards[id[len(id)-1]%cacheShards] }

// get returns the final record that is known to have stood a moment ago.
func (r *outcomeCache) get(id store.ID) (store.Record, bool) {
	if len(r.shards) == 0 {
		return store.Record{}, false
	}
	return r.shard(id).get(id)
}

// held is what get would return, if token names it.
func (r *outcomeCache) lookup(id store.ID, token store.Token) *cacheEntry {
	if len(r.shards) == 0 {
		return nil
	}
	return r.shard(id).lookup(id, token)
}

// put keeps what stood, when it is final, for as long as it may be told. Asked is
// when the store was asked: what it says can be as old.
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
	k.record.Fingerprint = append(k.print[:0], current.Fingerprint...) // what they are in may be large
	k.record.Outcome = slices.Clone(current.Outcome)
	r.shard(current.ID).put(k)
}

// clock is the time, where anything is kept.
func (r *outcomeCache) clock() time.Time {
	if len(r.shards) == 0 {
		return time.Time{}
	}
	return now().Add(r.ahead)
}

// older lets time pass for what is kept, and for what the store was asked for and has
// not said. It is for those who explore what may happen, one step after the other.
func (r *outcomeCache) advance(by time.Duration) {
	r.ahead += by
	for i := range r.shards {
		for _, k := range r.shards[i].kept {
			k.until = k.until.Add(-by)
		}
	}
}

// drop forgets a record.
func (r *outcomeCache) drop(id store.ID) {
	if len(r.shards) > 0 {
		r.shard(id).drop(id)
	}
}

// clear forgets all.
func (r *outcomeCache) clear() {
	for i := range r.shards {
		r.shards[i].clear()
	}
}

func sizeOf(r *store.Record) int {
	return replayExtra + len(r.Operation) + len(r.Scope) + len(r.Key) + len(r.Fingerprint) + len(r.Input) + len(r.Outcome)
}

// replayShard is a part of them. Who has waited longest goes first, unless it was
// asked for since.
type cacheShard struct {
	room int

	mu    sync.Mutex
	kept  map[store.ID]*cacheEntry
	order []*cacheEntry // those at the front came first; some may be dropped
	used  int           // bytes
}

// kept is a record in memory. Who has it may ask it, without the lock, whether it is
// there still; its record is read under the lock.
type cacheEntry struct {
	record store.Record
	until  time.Time
	size   int
	asked  atomic.Bool // since it was last passed over
	gone   atomic.Bool
	print  fingerprint // room for that of the record
}

// stands reports whether k may be told, and notes that somebody asked.
func (k *cacheEntry) isValid() bool {
	if k == nil || k.gone.Load() || until(k.until) <= 0 {
		return false
	}
	if !k.asked.Load() { // a write would take it from the other processors
		k.asked.Store(true)
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

// makeRoom passes over the first in order, or lets it go.
func (s *cacheShard) makeRoom() {
	first := s.order[0]
	s.order = s.order[1:]
	switch {
	case first.gone.Load():
	case first.asked.Load() && until(first.until) > 0:
		first.asked.Store(false)
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

// forget lets k go. Its bytes go at once, although k may still be in order.
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
