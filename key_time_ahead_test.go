package semel_test

import (
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

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
			if _, err := mem.Purge(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
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
			if r := wantState(t, mem, call, store.Succeeded); r.Expire != want {
				t.Errorf("%s expires in %v, want %v", key, r.Expire, want)
			}
		}
	})
}
