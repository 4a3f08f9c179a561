package semel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// Rule 12: a key with a time can be rejected if it is older than the retention, or
// from the future, and only if there is no record.

func uuidv7(at time.Time) string {
	ms := at.UnixMilli()
	return fmt.Sprintf("%08x-%04x-7abc-8def-0123456789ab", ms>>16, ms&0xffff)
}

func ulid(at time.Time) string {
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	text := []byte("0000000000ZZZZZZZZZZZZZZZZ")
	for ms, i := at.UnixMilli(), 9; i >= 0; ms, i = ms>>5, i-1 {
		text[i] = alphabet[ms&31]
	}
	return string(text)
}

// timedKey is a kind of key with a time in it.
type timedKey struct {
	key  func(time.Time) string
	time func(string) (time.Time, bool)
}

func timedKeys() map[string]timedKey {
	return map[string]timedKey{
		"UUIDv7":             {uuidv7, semel.UUIDv7Time},
		"ULID":               {ulid, semel.ULIDTime},
		"ULID in lower case": {func(at time.Time) string { return strings.ToLower(ulid(at)) }, semel.ULIDTime},
	}
}

func TestRule12LateDuplicatesAreNotRunAgain(t *testing.T) {
	const day = 24 * time.Hour
	type row struct {
		off  time.Duration // of the time in the key, from now
		o    semel.OperationOptions[string]
		want error
	}
	eachPair(t, timedKeys(), map[string]row{
		"now":                        {},
		"as old as the retention":    {off: -day},
		"older than the retention":   {off: -day - time.Millisecond, want: semel.ErrKeyExpired},
		"within another retention":   {off: -7 * day, o: semel.OperationOptions[string]{Retention: 7 * day}},
		"older than that":            {off: -7*day - time.Millisecond, o: semel.OperationOptions[string]{Retention: 7 * day}, want: semel.ErrKeyExpired},
		"ahead within the skew":      {off: 5 * time.Minute},
		"ahead of the skew":          {off: 5*time.Minute + time.Millisecond, want: semel.ErrKeyExpired},
		"ahead within another skew":  {off: time.Hour, o: semel.OperationOptions[string]{Skew: time.Hour}},
		"ahead of another skew":      {off: time.Minute, o: semel.OperationOptions[string]{Skew: time.Second}, want: semel.ErrKeyExpired},
		"from the beginning of time": {off: -30 * 365 * day, want: semel.ErrKeyExpired},
	}, func(t *testing.T, k timedKey, tt row) {
		for _, d := range entryPoints() {
			t.Log(d.name)
			o := d.o
			o.KeyTime, o.Retention, o.Skew = k.time, tt.o.Retention, tt.o.Skew
			p, _ := solo(t, semel.Options{})
			call := plain("op", o).Call(me, k.key(time.Now().Add(tt.off)), "in")
			if tt.want == nil {
				d.ask(t.Context(), p, call, returns("v")).want(t, "v", false)
				continue
			}
			a := d.ask(t.Context(), p, call, never(t))
			a.wantErr(t, tt.want)
			check.Equal(t, semel.RetryAfter(a.err), 0, "RetryAfter (it leads to the same)")
			wantState(t, p.mem, call, store.Absent)
		}
	})
}

// TestRule12CurrentRecordIsReplayed, however old the key is.
func TestRule12CurrentRecordIsReplayed(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, _ := solo(t, semel.Options{})
		call := d.withKeyTime(semel.UUIDv7Time).Call(me, uuidv7(time.Now()), "in")
		pass(20 * time.Hour)
		d.ask(t.Context(), p, call, returns("v")).want(t, "v", false)
		pass(20 * time.Hour)
		d.ask(t.Context(), p, call, never(t)).want(t, "v", true)
		pass(20 * time.Hour)
		check.Result(admin.Purge(t.Context(), p, 10))(t, 1, "Purge")
		d.ask(t.Context(), p, call, never(t)).wantErr(t, semel.ErrKeyExpired)
	})
}

// TestRule12UnfinishedRecordsAreContinued: the key is old, but its attempt is
// the one that was released.
func TestRule12UnfinishedRecordsAreContinued(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		op := plain("op", semel.OperationOptions[string]{KeyTime: semel.ULIDTime})
		call := op.Call(me, ulid(time.Now()), "in")
		pass(20 * time.Hour)
		createExisting(t, mem, call, pending)
		pass(20 * time.Hour)
		do(t.Context(), start(t, mem, semel.Options{}), call, returns("v")).want(t, "v", false)
	})
}

// TestRule12WithoutAnAnswerTheStoreIsUnavailable: it must be known that there is no
// record.
func TestRule12WithoutAnAnswerTheStoreIsUnavailable(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, _ := solo(t, semel.Options{})
		call := d.withKeyTime(semel.UUIDv7Time).Call(me, uuidv7(time.Now().Add(-48*time.Hour)), "in")
		p.faults.Decide(func(request) fault { return fault{Before: errCut} })
		d.ask(t.Context(), p, call, never(t)).wantErr(t, semel.ErrUnavailable)
	})
}

// TestRule12KeysWithoutATime are refused by every entry point (TestKeysWithoutATimeAmongOthers).
func TestRule12KeysWithoutATime(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_123)
	for _, key := range []string{
		"k", ulid(now), strings.Replace(uuidv7(now), "-7abc", "-4abc", 1), strings.ReplaceAll(uuidv7(now), "-", ""),
		uuidv7(now) + "0", uuidv7(now)[1:], "g" + uuidv7(now)[1:], strings.ReplaceAll(uuidv7(now), "-", "") + "----",
	} {
		if at, ok := semel.UUIDv7Time(key); ok {
			t.Errorf("UUIDv7Time(%q) = %v, want none", key, at)
		}
	}
	for _, key := range []string{
		"k", uuidv7(now), ulid(now) + "0", ulid(now)[1:], "8" + ulid(now)[1:], ulid(now)[:25] + "U", ulid(now)[:25] + "I", ulid(now)[:24] + "ü",
		ulid(now)[:24] + "ſ",
	} {
		if at, ok := semel.ULIDTime(key); ok {
			t.Errorf("ULIDTime(%q) = %v, want none", key, at)
		}
	}
}

func TestRule12TimesAreReadToTheMillisecond(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{time.UnixMilli(0), time.UnixMilli(1), time.UnixMilli(1_700_000_000_123), time.UnixMilli(1<<48 - 1)} {
		for name, k := range timedKeys() {
			if got, ok := k.time(k.key(at)); !ok || !got.Equal(at) {
				t.Errorf("time in the %s %q = %v, %v, want %v", name, k.key(at), got, ok, at)
			}
		}
	}
	if got, ok := semel.UUIDv7Time("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"); !ok || got.UnixMilli() != 1645557742000 {
		t.Errorf("the example of RFC 9562 has the time %v, %v", got.UnixMilli(), ok)
	}
}
