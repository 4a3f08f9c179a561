package semel_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// some reads the time of some keys: those that begin with "at " are UUIDv7, those
// that begin with "no " are refused.
func some(key string) (time.Time, bool) {
	if uuid, ok := strings.CutPrefix(key, "at "); ok {
		return semel.UUIDv7Time(uuid)
	}
	return time.Time{}, !strings.HasPrefix(key, "no ")
}

// withKeyTime is an operation of d whose keys have a time.
func (d entryPoint) withKeyTime(keyTime func(string) (time.Time, bool)) *semel.Operation[string] {
	d.o.KeyTime = keyTime
	return plain("op", d.o)
}

// TestTimeOfTheKeyLeadsTheID: a table can be partitioned by the ID, and a key
// always has the same ID.
func TestTimeOfTheKeyLeadsTheID(t *testing.T) {
	t.Parallel()
	made := time.UnixMilli(1_700_000_000_123)
	op := plain("op", semel.OperationOptions[string]{KeyTime: some})
	timed := op.Call(me, "at "+uuidv7(made), "in").ID()
	if got, ok := timed.Time(); !ok || !got.Equal(made) {
		t.Errorf("the ID has the time %v, %v, want %v", got, ok, made)
	}
	if again := op.Call(me, "at "+uuidv7(made), "other").ID(); again != timed {
		t.Errorf("the same key has the ID %s, and %s before", again, timed)
	}
	plainID := op.Call(me, "k", "in").ID()
	if _, ok := plainID.Time(); ok || plainID != store.NewID("op", me.Bytes(), "k") {
		t.Errorf("a key without a time has the ID %s", plainID)
	}
}

// TestKeysWithoutATimeAmongOthers are ordinary ones: no age is too great for them.
func TestKeysWithoutATimeAmongOthers(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, mem := solo(t, semel.Options{})
		op := d.withKeyTime(some)
		d.ask(t.Context(), p, op.Call(me, "k", "in"), returns("v")).want(t, "v", false)
		pass(20 * time.Hour)
		d.ask(t.Context(), p, op.Call(me, "k", "in"), never(t)).want(t, "v", true)
		refused := op.Call(me, "no k", "in")
		wantField(t, d.ask(t.Context(), p, refused, never(t)).err, "Key")
		wantState(t, mem, refused, store.Absent)
	})
}

// TestClockOfTheEngine is what the times in keys are compared with.
func TestClockOfTheEngine(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		const ahead = 30 * 24 * time.Hour
		p, _ := solo(t, semel.Options{Clock: func() time.Time { return time.Now().Add(ahead) }})
		op := d.withKeyTime(semel.UUIDv7Time)
		d.ask(t.Context(), p, op.Call(me, uuidv7(time.Now()), "in"), never(t)).wantErr(t, semel.ErrKeyExpired)
		d.ask(t.Context(), p, op.Call(me, uuidv7(time.Now().Add(ahead)), "in"), returns("v")).want(t, "v", false)
	})
}

// TestNoPartitionForTheKey: where the store has no place for the time of a key that
// is neither old nor ahead, nothing is run, or nothing of it is left, and the key is
// to come again.
func TestNoPartitionForTheKey(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, mem := solo(t, semel.Options{})
		call := d.withKeyTime(semel.UUIDv7Time).Call(me, uuidv7(time.Now()), "in")
		p.faults.Decide(func(r request) fault {
			if r.Method == "Atomic" {
				return fault{Rollback: store.ErrNoPartition}
			}
			return fault{Result: &store.SwapResult{Err: store.ErrNoPartition}}
		})
		a := d.ask(t.Context(), p, call, returns("v"))
		a.wantErr(t, semel.ErrUnavailable)
		if semel.RetryAfter(a.err) <= 0 {
			t.Error("RetryAfter is zero, want some: the partition may be created")
		}
		wantState(t, mem, call, store.Absent)
		p.faults.Decide(nil)
		d.ask(t.Context(), p, call, returns("v")).want(t, "v", false)
	})
}

// TestRecordOutlivesRedelivery: a key that may come again when its record is gone
// would run again.
func TestRecordOutlivesRedelivery(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const week = 7 * 24 * time.Hour
		for _, tt := range []struct {
			engine, retention time.Duration
			fits              bool
		}{{0, 0, false}, {week, 0, false}, {week + 1, 0, true}, {0, week, false}, {0, week + 1, true}, {week + 1, week, false}} {
			op := plain("op", semel.OperationOptions[string]{Redelivery: week, Retention: tt.retention})
			_, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure, Retention: tt.engine, Operations: []semel.Declared{op}})
			p, _ := solo(t, semel.Options{Retention: tt.engine})
			first := do(t.Context(), p, op.Call(me, "k", "in"), returns("v")).err
			if tt.fits {
				if err != nil || first != nil {
					t.Errorf("with %+v New and Do say %v, %v", tt, err, first)
				}
				continue
			}
			wantField(t, err, "Retention")
			wantField(t, first, "Retention")
		}
		wantRefusedEverywhere(t, plain("op", semel.OperationOptions[string]{Redelivery: -1}).Call(me, "k", "in"), "Redelivery")
	})
}

// TestGetFindsKeysWithATime: of operations it was given as they say, of others if
// the time is where it usually is.
func TestGetFindsKeysWithATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		op := plain("op", semel.OperationOptions[string]{KeyTime: some})
		knows := start(t, mem, semel.Options{Operations: []semel.Declared{op}})
		v7 := plain("v7", semel.OperationOptions[string]{KeyTime: semel.UUIDv7Time})
		ul := plain("ulid", semel.OperationOptions[string]{KeyTime: semel.ULIDTime})
		for _, tt := range []struct {
			op     *semel.Operation[string]
			key    string
			unseen bool // by those that do not know the operation
		}{
			{op, "at " + uuidv7(time.Now()), true},
			{op, "k", false},
			{v7, uuidv7(time.Now()), false},
			{ul, ulid(time.Now()), false},
			{plain("plain", semel.OperationOptions[string]{}), uuidv7(time.Now()), false},
		} {
			do(t.Context(), knows, tt.op.Call(me, tt.key, "in"), returns("v")).want(t, "v", false)
			for _, p := range []*process{knows, start(t, mem, semel.Options{})} {
				r, ok, err := admin.Get(t.Context(), p, tt.op.Name(), me, tt.key)
				if want := p == knows || !tt.unseen; err != nil || ok != want || ok && r.Key != tt.key {
					t.Errorf("Get of %s %q = %q, %v, %v, want it found: %v", tt.op.Name(), tt.key, r.Key, ok, err, want)
				}
			}
			ids := admin.RecordIDs(tt.op.Name(), me, tt.key)
			if id := tt.op.Call(me, tt.key, "in").ID(); slices.Contains(ids, id) == tt.unseen {
				t.Errorf("RecordIDs of %q = %v, and its record has %s", tt.key, ids, id)
			}
		}
		_, ok, err := admin.Get(t.Context(), knows, "op", me, "no k")
		check.Result(ok, err)(t, false, "Get of a key that is refused")
	})
}

// TestKeyTimeThatPanics: the panic occurs where the call is made, before the store
// is used.
func TestKeyTimeThatPanics(t *testing.T) {
	t.Parallel()
	op := plain("op", semel.OperationOptions[string]{KeyTime: func(string) (time.Time, bool) { panic("no such key") }})
	defer func() { check.Equal(t, recover(), any("no such key"), "Call ended with the panic") }()
	_, _, _ = semel.Do(context.Background(), nil, op.Call(me, "k", "in"), never(t))
}

// TestKeyFromTheFutureIsRemembered: a clock that is ahead, by less than the Skew,
// gives a key that is young for longer than its record is kept from the outcome. It
// must not run again in between.
func TestKeyFromTheFutureIsRemembered(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, mem := solo(t, semel.Options{})
		o := d.o
		o.KeyTime, o.Retention = semel.UUIDv7Time, time.Hour
		call := plain("op", o).Call(me, uuidv7(time.Now().Add(4*time.Minute)), "in")
		d.ask(t.Context(), p, call, returns("v")).want(t, "v", false)
		for range 80 {
			pass(time.Minute)
			check.Must(mem.Purge(t.Context(), 10))(t)
			got := d.ask(t.Context(), p, call, never(t))
			if got.err == nil {
				got.want(t, "v", true)
				continue
			}
			got.wantErr(t, semel.ErrKeyExpired)
		}
	})
}

// TestOnlyKeysWithATimeAreKeptForTheSkew: what an operation says of its retention is
// exact for the ordinary keys among them.
func TestOnlyKeysWithATimeAreKeptForTheSkew(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, mem := solo(t, semel.Options{})
		o := d.o
		o.Retention, o.Skew = time.Hour, time.Minute
		o.KeyTime = func(key string) (time.Time, bool) {
			at, _ := semel.UUIDv7Time(key)
			return at, true
		}
		op := plain("op", o)
		for key, want := range map[string]time.Duration{"k": time.Hour, uuidv7(time.Now()): time.Hour + time.Minute} {
			call := op.Call(me, key, "in")
			d.ask(t.Context(), p, call, returns("v")).want(t, "v", false)
			check.Equal(t, wantState(t, mem, call, store.Succeeded).Expire, want, "%s expires in", key)
		}
	})
}
