package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/outbox"
)

// The tests of this file are the pitfalls of outboxes. That several relays keep the order, although some events
// fail at first, is tested by TestHistory.

// TestGap: the position of an event that is committed late is smaller than positions that
// were published before. A reader that goes on after the last position misses it.
func TestGap(t *testing.T) { t.Parallel(); onAll(t, suite{gap[*sql.Tx], gap[pgx.Tx]}) }

func gap[Tx any](t *testing.T, d *database[Tx]) {
	t.Helper()
	e, b := newEngine(t, d.Store, semel.Options{}), newBroker(t)
	start(t, e, b, quick)
	late := d.begin()
	check.Require(t, outbox.AppendTx(t.Context(), e, late.tx, about("a", "late")))
	if !d.oneWriter { // otherwise no other transaction writes meanwhile
		d.write(e, about("b", "early"), about("a", "early of the same aggregate, without its lock"))
		b.gets("early", "early of the same aggregate, without its lock")
		emptied(t, e)
	}
	late.commit()
	b.gets("late")
	emptied(t, e)
}

// TestUnrelatedTransaction stays open, in the same database and in another one of the
// server. Readers that wait for older transactions stop.
func TestUnrelatedTransaction(t *testing.T) {
	t.Parallel()
	onAll(t, suite{unrelatedTransaction[*sql.Tx], unrelatedTransaction[pgx.Tx]})
}

func unrelatedTransaction[Tx any](t *testing.T, d *database[Tx]) {
	t.Helper()
	e, b := newEngine(t, d.Store, semel.Options{}), newBroker(t)
	defer d.hold()()
	start(t, e, b, quick)
	events, list := numbered("a", 5)
	d.write(e, events...)
	b.gets(list...)
	emptied(t, e)
}

// TestNoTransactionWhilePublishing: the broker may take its time.
func TestNoTransactionWhilePublishing(t *testing.T) {
	t.Parallel()
	onAll(t, suite{noTransactionWhilePublishing[*sql.Tx], noTransactionWhilePublishing[pgx.Tx]})
}

func noTransactionWhilePublishing[Tx any](t *testing.T, d *database[Tx]) {
	t.Helper()
	if d.open == nil {
		t.Skip("no connection sees all transactions")
	}
	e, b := newEngine(t, d.Store, semel.Options{}), newBroker(t)
	x := d.begin()
	check.Require(t, d.insert(t.Context(), x.tx))
	realtest.Poll(t, "the open transaction", func() bool { return d.open() > 0 })
	x.commit()
	// While this waits, nothing else happens that could end a transaction.
	b.fail = func(context.Context, outbox.Message) error {
		realtest.Poll(t, "the end of all transactions, while a message is published", func() bool { return d.open() == 0 })
		return nil
	}
	events, list := numbered("a", 3)
	d.write(e, events...)
	stop := start(t, e, b, outbox.Options{}) // after the commit, and without a second poll
	b.gets(list...)
	stop()
	emptied(t, e)
}

// TestPoison parks only the aggregate of an event that cannot be published. Its events are
// not skipped, neither by the relay nor by Redrive.
func TestPoison(t *testing.T) { t.Parallel(); onAll(t, suite{poison[*sql.Tx], poison[pgx.Tx]}) }

func poison[Tx any](t *testing.T, d *database[Tx]) {
	t.Helper()
	alarms, b := newAlarms(), newBroker(t)
	e := newEngine(t, d.Store, semel.Options{Observer: alarms})
	var mu sync.Mutex
	broken := true
	b.fail = func(_ context.Context, m outbox.Message) error {
		mu.Lock()
		defer mu.Unlock()
		if string(m.Payload) == "bad-1" && broken {
			return outbox.Permanent(errRefused)
		}
		return nil
	}
	start(t, e, b, quick)
	neighbour := sameLane("bad")
	bad, list := numbered("bad", 3)
	good, want := numbered(neighbour, 3)
	d.write(e, append(bad, good...)...)
	b.gets(append(want, "bad-0")...)
	alarm := alarms.next(t)
	if alarm.Kind != event.Parked || alarm.Err == nil {
		t.Errorf("the alarm is %+v, want Parked with its error", alarm)
	}
	d.write(e, about("bad", "bad-3"), about(neighbour, "last"))
	b.gets("last")
	emptied(t, e) // all events of the parked aggregate were set aside
	if got := b.of("bad"); !slices.Equal(got, list[:1]) {
		t.Errorf("%v of the parked aggregate were published, want the first", got)
	}
	parked := check.Must(outbox.ParkedOf(t.Context(), e, 10))(t)
	if len(parked) != 1 || parked[0].Aggregate != "bad" || parked[0].Topic != "orders" || parked[0].Events != 3 || parked[0].Failures != 1 ||
		parked[0].Reason != errRefused.Error() || parked[0].EventType != "Changed" || parked[0].Redriven {
		t.Errorf("the parked aggregates are %+v", parked)
	}
	if s := check.Must(outbox.StatsOf(t.Context(), e))(t); s.ParkedAggregates != 1 || s.ParkedEvents != 3 || s.Events != 0 {
		t.Errorf("the numbers are %+v, want 3 events of 1 parked aggregate", s)
	}

	if was, err := outbox.Redrive(t.Context(), e, redriveOf(neighbour)); was || err != nil {
		t.Errorf("Redrive of an aggregate that is not parked: %v, %v", was, err)
	}
	if was, err := outbox.Redrive(t.Context(), e, redriveOf("bad")); !was || err != nil { // still broken
		t.Errorf("Redrive: %v, %v", was, err)
	}
	if again := alarms.next(t); again.Kind != event.Parked {
		t.Errorf("after a redrive of a broken event the alarm is %v", again)
	}
	mu.Lock()
	broken = false
	mu.Unlock()
	if was, err := outbox.Redrive(t.Context(), e, redriveOf("bad")); !was || err != nil {
		t.Errorf("Redrive: %v, %v", was, err)
	}
	b.gets("bad-3")
	if got := b.of("bad"); !slices.Equal(got, append(list, "bad-3")) {
		t.Errorf("%v were published after the redrive, want all in order", got)
	}
	emptied(t, e)
	if s := check.Must(outbox.StatsOf(t.Context(), e))(t); s != (outbox.Stats{}) {
		t.Errorf("%+v remain", s)
	}
	notes := check.Must(outbox.NotesOf(t.Context(), e, 10))(t)
	if len(notes) != 2 || notes[0].Age > notes[1].Age || notes[1].Topic != "orders" || notes[1].Aggregate != "bad" || notes[1].EventID != parked[0].EventID ||
		notes[1].EventType != "Changed" || notes[1].Dropped || notes[1].Actor != "ann" || notes[1].Reason != "fixed" || notes[1].Age < 0 {
		t.Errorf("the notes are %+v, want one for each redrive of a parked aggregate", notes)
	}
}

// TestDrop goes on without the event that cannot be published.
func TestDrop(t *testing.T) { t.Parallel(); onAll(t, suite{drop[*sql.Tx], drop[pgx.Tx]}) }

func drop[Tx any](t *testing.T, d *database[Tx]) {
	t.Helper()
	alarms, b := newAlarms(), newBroker(t)
	e := newEngine(t, d.Store, semel.Options{Observer: alarms})
	b.fail = func(_ context.Context, m outbox.Message) error {
		if string(m.Payload) == "bad-0" {
			return outbox.Permanent(errors.New("too large"))
		}
		return nil
	}
	start(t, e, b, quick)
	events, _ := numbered("bad", 3)
	d.write(e, events...)
	alarms.next(t)
	request := redriveOf("bad")
	request.Drop, request.EventID = true, "00000000-0000-7000-8000-000000000000"
	for _, other := range []string{request.EventID, "no UUID", strings.Repeat("-", 36)} {
		request.EventID = other
		if was, err := outbox.Redrive(t.Context(), e, request); was || err != nil {
			t.Errorf("Redrive of the event %q: %v, %v, want no change", other, was, err)
		}
	}
	request.EventID = check.Must(outbox.ParkedOf(t.Context(), e, 1))(t)[0].EventID
	if was, err := outbox.Redrive(t.Context(), e, request); !was || err != nil {
		t.Fatalf("Redrive: %v, %v", was, err)
	}
	b.gets("bad-1", "bad-2")
	emptied(t, e)
	if notes := check.Must(outbox.NotesOf(t.Context(), e, 1))(t); len(notes) != 1 || !notes[0].Dropped {
		t.Errorf("the notes are %+v, want one about an event that was dropped", notes)
	}
	if got := b.of("bad"); !slices.Equal(got, []string{"bad-1", "bad-2"}) {
		t.Errorf("%v were published, want those after the dropped one", got)
	}
}
