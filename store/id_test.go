package store_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// The IDs are stored: they are the same for ever.
func TestIDsNeverChange(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 29, 1, 30, 0, 123_456_789, time.UTC)
	for _, tt := range []struct {
		id   store.ID
		want string
	}{
		{store.NewID("op", "scope", "key"), "63c3a7ccc30d84eee80873f029edcff0"},
		{store.NewID("op", "scope", "key 1"), "049e214e867be9485b8e93f6e542e462"},
		{store.NewTimedID("op", "scope", "key", at), "819d3736523b63c3a7ccc30d84eee808"},
		{store.FirstID(at), "819d3736523b00000000000000000000"},
		{store.NewTimedID("op", "scope", "key", time.UnixMilli(-1)), "80000000000063c3a7ccc30d84eee808"},
		{store.NewTimedID("op", "scope", "key", time.UnixMilli(math.MaxInt64)), "ffffffffffff63c3a7ccc30d84eee808"},
	} {
		check.Equal(t, tt.id.String(), tt.want, "ID")
	}
}

// Every part tells, and where it ends.
func TestIDsOfOthersDiffer(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	seen := make(map[store.ID][]string)
	for _, parts := range [][]string{
		{"a", "b", "c"},
		{"ab", "", "c"},
		{"a", "bc", ""},
		{"", "ab", "c"},
		{"a", "b", "d"},
		{"a", "d", "c"},
		{"d", "b", "c"},
		{"A", "b", "c"},
		{"a", "b\x00", "c"},
		{"a", "b", "c\xff"},
		{"", "", ""},
		{"abc", "", ""},
		{"a", "c", "b"},
	} {
		ids := []store.ID{
			store.NewID(parts[0], parts[1], parts[2]),
			store.NewTimedID(parts[0], parts[1], parts[2], now),
			store.NewTimedID(parts[0], parts[1], parts[2], now.Add(time.Millisecond)),
		}
		for _, id := range ids {
			if other, twice := seen[id]; twice {
				t.Errorf("%q and %q have the ID %s", other, parts, id)
			}
			seen[id] = parts
		}
	}
}

// IDs without a time sort first, then IDs with a time, in the order of their times.
func TestIDsSortByTheirTime(t *testing.T) {
	t.Parallel()
	var want []store.ID
	for i := range 100 {
		want = append(want, store.NewID("op", "scope", strings.Repeat("k", i)))
	}
	slices.SortFunc(want, compare)
	for i := range int64(100) {
		at := time.UnixMilli(i * i * 10_000_000_000)
		want = append(want, store.FirstID(at), store.NewTimedID("op", "scope", "key", at))
	}
	if !slices.IsSortedFunc(want, compare) {
		t.Errorf("IDs do not come in the order of their times, the last is %s", want[len(want)-1])
	}
}

func compare(a, b store.ID) int { return bytes.Compare(a[:], b[:]) }

func TestTimeOfAnID(t *testing.T) {
	t.Parallel()
	if at, ok := store.NewID("op", "scope", "key").Time(); ok || !at.IsZero() {
		t.Errorf("Time of an ID without one = %v, %v", at, ok)
	}
	const last = 1<<47 - 1
	for ms, want := range map[int64]int64{0: 0, 1: 1, 1_700_000_000_123: 1_700_000_000_123, last: last, last + 1: last, -5: 0} {
		id := store.NewTimedID("op", "scope", "key", time.UnixMilli(ms))
		if at, ok := id.Time(); !ok || at.UnixMilli() != want {
			t.Errorf("Time of an ID of %d ms = %v (%d ms), %v, want %d ms", ms, at, at.UnixMilli(), ok, want)
		}
		if first := store.FirstID(time.UnixMilli(ms)); compare(first, id) > 0 {
			t.Errorf("FirstID of %d ms = %s, which is after %s", ms, first, id)
		}
	}
}

// ParseID accepts what String writes, in lower or upper case, and nothing else.
func TestParseID(t *testing.T) {
	t.Parallel()
	id := store.NewID("operation", "scope", "key")
	for _, text := range []string{id.String(), strings.ToUpper(id.String())} {
		check.Result(store.ParseID(text))(t, id, "ParseID(%q)", text)
	}
	for _, text := range []string{"", "it", id.String()[1:], id.String() + "00", " " + id.String(), "g" + id.String()[1:]} {
		if got, err := store.ParseID(text); err == nil || got != (store.ID{}) || !strings.Contains(err.Error(), "32 hexadecimal digits") {
			t.Errorf("ParseID(%q) = %v, %v, want the zero ID and an error that says what is expected", text, got, err)
		}
	}
}
