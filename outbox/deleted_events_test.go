package outbox_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/store/storetest"
)

// TestDeletedEvents: an operator deletes an event that has failed. The relay forgets it, and does not read
// its lane again and again.
func TestDeletedEvents(t *testing.T) {
	t.Parallel()
	d, b := onSQLite(t), newBroker(t)
	s := storetest.NewFaultyTx(d.Store, nil)
	b.fail = func(_ context.Context, m outbox.Message) error {
		if m.Aggregate == "bad" {
			return errRefused
		}
		return nil
	}
	start(t, newEngine(t, s, semel.Options{}), b, quick)
	writer := newEngine(t, d.Store, semel.Options{})
	d.write(writer, about("bad", "bad"))
	b.until("a failure", func(_ []outbox.Message, failures int) bool { return failures > 0 })
	reads := s.CallsOf("Head")
	d.Exec(`DELETE FROM semel_outbox`)
	realtest.Poll(t, "the relay to look for the event", func() bool { return s.CallsOf("Head") > reads })
	reads = s.CallsOf("Head")
	const events = 20
	for i := range events {
		body := strconv.Itoa(i)
		d.write(writer, about(otherLane("bad"), body))
		b.gets(body)
	}
	if n := s.CallsOf("Head") - reads; n > 5*events {
		t.Errorf("the relay has read %d times to publish %d events", n, events)
	}
}

// TestPanicOfAProbe: like a panic of the publisher, it does not stop the process.
func TestPanicOfAProbe(t *testing.T) {
	t.Parallel()
	d, b := onSQLite(t), newBroker(t)
	e := newEngine(t, d.Store, semel.Options{})
	b.fail = func(context.Context, outbox.Message) error { return errRefused }
	o := quick
	var probed atomic.Int64
	o.Probe = func(context.Context) error {
		probed.Add(1)
		panic(errors.New("the probe has a fault"))
	}
	start(t, e, b, o)
	d.write(e, about("a", "bad"))
	b.until("failures after panics", func([]outbox.Message, int) bool { return probed.Load() > 1 })
}
