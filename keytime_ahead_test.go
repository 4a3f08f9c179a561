package semel_test

import (
	"testing"
	"time"

	"github.com/semelgo/semel"
)

// TestKeyFromTheFutureIsRemembered: a clock that is ahead, by less than the Skew,
// gives a key that is young for longer than its record is kept from the outcome. It
// must not run again in between.
func TestKeyFromTheFutureIsRemembered(t *testing.T) {
	eachDoor(t, func(t *testing.T, d door) {
		p, mem := solo(t, semel.Options{})
		o := d.o
		o.KeyTime, o.Retention = semel.UUIDv7Time, time.Hour
		call := plain("op", o).Call(me, uuidv7(time.Now().Add(4*time.Minute)), "in")
		d.ask(t.Context(), p, call, says("v")).want(t, "v", false)
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
