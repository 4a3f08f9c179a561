package memory_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestPurgeUsesTheLastExpiry: the expiry of a record may be extended, shortened and
// removed any number of times. The last one decides.
func TestPurgeUsesTheLastExpiry(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := memory.New(memory.Options{Now: clock.Now})
	const records, rounds = 100, 20
	last := make([]time.Duration, records)
	for i := range records {
		mustCreate(t, s, create(strconv.Itoa(i), store.InProgress, 0))
		for round := range rounds {
			last[i] = time.Duration((i*7+round*13)%records+1) * time.Minute
			token := store.Token{State: store.Pending, Attempt: 1, Owner: 1}
			change := create(strconv.Itoa(i), store.Pending, last[i])
			if change.If = token; round == 0 {
				change.If.State = store.InProgress
			}
			if got := swap(t, s, change)[0]; !got.Applied(change) {
				t.Fatalf("record %d, round %d: %+v", i, round, got)
			}
		}
	}
	for minute := range records + 1 {
		want := 0
		for _, d := range last {
			if d == time.Duration(minute)*time.Minute {
				want++
			}
		}
		check.Result(s.Purge(t.Context(), 2*records))(t, want, "after %d minutes purged", minute)
		clock.Advance(time.Minute)
	}
}

// TestPurgeTakesTheFirstExpired: Purge removes the record that expired first, while
// records with two retentions are added and some are extended.
func TestPurgeTakesTheFirstExpired(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := memory.New(memory.Options{Now: clock.Now})
	left := make(map[string]time.Duration) // when each goes; no two at the same time
	for i := range 2000 {
		clock.Advance(4)
		now, keep := 4*time.Duration(i+1), time.Duration(700)
		if i%3 == 0 {
			keep = 101
		}
		c := create(strconv.Itoa(i), store.Pending, keep)
		mustCreate(t, s, c)
		if i%7 == 0 { // it is noted twice
			keep += 50
			c.If, c.To.Owner, c.To.Expire = c.To.Token, 2, keep
			if got := swap(t, s, c)[0]; !got.Applied(c) {
				t.Fatalf("put off: %+v", got)
			}
		}
		left[c.To.Key] = now + keep
		for i%10 == 9 && purgesFirst(t, s, left, now) {
		}
	}
}

// purgesFirst purges one record, if one has expired, and reports whether.
func purgesFirst(t *testing.T, s *memory.Store, left map[string]time.Duration, now time.Duration) bool {
	t.Helper()
	first, want := "", 0
	for key, at := range left {
		if at <= now && (first == "" || at < left[first]) {
			first, want = key, 1
		}
	}
	if got, err := s.Purge(t.Context(), 1); got != want || err != nil {
		t.Fatalf("at %d purged %d, %v, want %d", now, got, err, want)
	}
	if want == 1 && current(t, s, first) != store.Absent {
		t.Fatalf("at %d record %s is current, and it expired first", now, first)
	}
	delete(left, first)
	return want == 1
}
