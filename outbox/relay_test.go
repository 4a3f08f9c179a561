package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// never is an interval at which no test polls: what it waits for must come by a wake-up.
var never = outbox.Options{Poll: time.Hour}

var place = semel.Define("place", semel.OperationOptions[struct{}]{})

// placed returns a function of DoTx that appends an event, and fails with err.
func placed[Tx any](e *semel.Engine[Tx], body string, err error) func(ctx context.Context, tx Tx) (string, error) {
	return func(ctx context.Context, tx Tx) (string, error) {
		return body, errors.Join(outbox.AppendTx(ctx, e, tx, about("a", body)), err)
	}
}

// TestDoTx publishes after the commit at once, and nothing for a replay or a rollback.
func TestDoTx(t *testing.T) { t.Parallel(); onAll(t, suite{doTx[*sql.Tx], doTx[pgx.Tx]}) }

func doTx[Tx any](t *testing.T, d *database[Tx]) {
	t.Helper()
	e, b := newEngine(t, d.Store, semel.Options{}), newBroker(t)
	start(t, e, b, never)
	run := func(key string, fn func(ctx context.Context, tx Tx) (string, error)) error {
		_, _, err := semel.DoTx(t.Context(), e, place.Call(semel.ScopeOf("ann"), key, struct{}{}), fn)
		return err
	}
	if err := run("1", placed(e, "rolled back", errRefused)); err == nil {
		t.Error("a refused operation succeeded")
	}
	for range 3 { // the second and the third are replays
		check.Require(t, run("2", placed(e, "first", nil)))
	}
	b.gets("first")
	check.Require(t, run("3", placed(e, "second", nil)))
	b.gets("second")
	if got := b.of("a"); !slices.Equal(got, []string{"first", "second"}) || b.count() != 2 {
		t.Errorf("%v were published, want those of the two operations that were committed", got)
	}
	emptied(t, e)
}

// TestInTx publishes at once after the commit of an operation whose claim comes first.
func TestInTx(t *testing.T) {
	t.Parallel()
	d := onSQLite(t)
	e, b := newEngine(t, d.Store, semel.Options{}), newBroker(t)
	start(t, e, b, never)
	leased := semel.Define("leased", semel.OperationOptions[struct{}]{Policy: semel.Atomic(), Lease: time.Minute})
	_, _, err := semel.DoTx(t.Context(), e, leased.Call(semel.ScopeOf("ann"), "1", struct{}{}), placed(e, "first", nil))
	check.Require(t, err)
	b.gets("first")
}

// TestMessage has what was appended. Its ID stays when it is published again.
func TestMessage(t *testing.T) { t.Parallel(); onAll(t, suite{message[*sql.Tx], message[pgx.Tx]}) }

func message[Tx any](t *testing.T, d *database[Tx]) {
	t.Helper()
	e, b := newEngine(t, d.Store, semel.Options{}), newBroker(t)
	var first atomic.Pointer[outbox.Message]
	b.fail = func(_ context.Context, m outbox.Message) error {
		if first.CompareAndSwap(nil, &m) {
			return errRefused
		}
		return nil
	}
	start(t, e, b, quick)
	want := outbox.Event{
		Topic: "Bücher ☃", Aggregate: "a", Type: "Changed", Payload: []byte("\x00\xff'\\"), Headers: map[string]string{"trace": `"1"`, "语": "文"},
	}
	d.write(e, want, outbox.Event{Topic: "t", Aggregate: "empty", Type: "T"})
	b.until("two messages", func(all []outbox.Message, _ int) bool { return len(all) == 2 })
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.messages {
		if m.Aggregate == "empty" {
			if len(m.Payload) != 0 || len(m.Headers) != 0 {
				t.Errorf("the empty event is %+v", m)
			}
			continue
		}
		if fmt.Sprint(m.Event) != fmt.Sprint(want) {
			t.Errorf("%+v was published, want %+v", m.Event, want)
		}
		if m.Age < 0 || m.Age > time.Minute {
			t.Errorf("its age is %v", m.Age)
		}
	}
	for _, m := range b.messages {
		if again := first.Load(); m.Aggregate == again.Aggregate && m.ID != again.ID {
			t.Errorf("the ID was %s, and is %s when it is published again", again.ID, m.ID)
		}
	}
	if len(b.messages[0].ID) != 36 || b.messages[0].ID == b.messages[1].ID {
		t.Errorf("the IDs are %s and %s", b.messages[0].ID, b.messages[1].ID)
	}
}

// TestLimits: an error names the field, and nothing is appended.
func TestLimits(t *testing.T) {
	t.Parallel()
	d := onSQLite(t)
	e := newEngine(t, d.Store, semel.Options{})
	long := strings.Repeat("x", outbox.MaxName)
	valid := outbox.Event{
		Topic: long, Aggregate: long, Type: long, Payload: make([]byte, outbox.MaxPayload),
		Headers: map[string]string{"h": strings.Repeat("x", outbox.MaxHeaders-len(`{"h":""}`))},
	}
	d.write(e, valid)
	for field, change := range map[string]func(*outbox.Event){
		"Event.Topic":     func(e *outbox.Event) { e.Topic += "x" },
		"Event.Aggregate": func(e *outbox.Event) { e.Aggregate = "" },
		"Event.Type":      func(e *outbox.Event) { e.Type = "ends with a space " },
		"Event.Payload":   func(e *outbox.Event) { e.Payload = append(e.Payload, 0) },
		"Event.Headers":   func(e *outbox.Event) { e.Headers = map[string]string{"h": strings.Repeat("x", outbox.MaxHeaders)} },
	} {
		invalid := valid
		change(&invalid)
		for _, all := range [][]outbox.Event{{invalid}, {valid, invalid}} {
			x := d.begin()
			err := outbox.AppendTx(t.Context(), e, x.tx, all...)
			if f, ok := errtype.Find[*semel.FieldError](err); !ok || f.Field != field {
				t.Errorf("AppendTx = %v, want a *FieldError about %s", err, field)
			}
			x.commit()
		}
	}
	for _, bad := range []string{"a\x00", "\xff", " a"} {
		x := d.begin()
		if err := outbox.AppendTx(t.Context(), e, x.tx, about(bad, "")); err == nil {
			t.Errorf("the aggregate %q is accepted", bad)
		}
		x.rollback()
	}
	if n := d.rows("semel_outbox"); n != 1 {
		t.Errorf("%d events are there, want the valid one", n)
	}
}

// TestInvalidRelays and redrives are refused with the name of the field.
func TestInvalidRelays(t *testing.T) {
	t.Parallel()
	e, b := newEngine(t, onSQLite(t).Store, semel.Options{}), newBroker(t)
	for field, o := range map[string]outbox.Options{
		"Poll": {Poll: -1}, "Lease": {Lease: -1}, "Batch": {Batch: 1001}, "Timeout": {Timeout: -1}, "MaxFailures": {MaxFailures: -1},
	} {
		_, err := outbox.NewRelay(e, b, o)
		if f, ok := errtype.Find[*semel.FieldError](err); !ok || f.Field != field {
			t.Errorf("NewRelay = %v, want a *FieldError about %s", err, field)
		}
	}
	for field, r := range map[string]outbox.RedriveRequest{"Actor": {Reason: "fixed"}, "Reason": {Actor: "ann", Reason: " "}, "EventID": {Actor: "ann", Reason: "r", Drop: true}} {
		_, err := outbox.Redrive(t.Context(), e, r)
		if f, ok := errtype.Find[*semel.FieldError](err); !ok || f.Field != field {
			t.Errorf("Redrive = %v, want a *FieldError about %s", err, field)
		}
	}
	without := newEngine(t, memory.New(memory.Options{}), semel.Options{})
	if _, err := outbox.NewRelay(without, b, outbox.Options{}); err == nil || !strings.Contains(err.Error(), "has no outbox") {
		t.Errorf("NewRelay over a store without an outbox = %v", err)
	}
	r := check.Must(outbox.NewRelay(e, b, quick))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	b.fail = func(ctx context.Context, _ outbox.Message) error {
		if err := r.Run(ctx); !errors.Is(err, outbox.ErrRunning) {
			t.Errorf("a second Run = %v", err)
		}
		cancel()
		return nil
	}
	_, _, err := semel.DoTx(t.Context(), e, place.Call(semel.ScopeOf("ann"), "1", struct{}{}), placed(e, "a", nil))
	check.Require(t, err)
	go func() { ended <- r.Run(ctx) }()
	check.Require(t, <-ended)
	if n := check.Must(outbox.StatsOf(t.Context(), e))(t).Events; n != 0 {
		t.Errorf("%d events remain: Run has not finished the one that was being published", n)
	}
}

// TestBrokerDown parks nothing, however long it lasts. Messages come in order afterwards.
func TestBrokerDown(t *testing.T) {
	t.Parallel()
	alarms, b := newAlarms(), newBroker(t)
	d := onSQLite(t)
	e := newEngine(t, d.Store, semel.Options{Observer: alarms})
	var down atomic.Bool
	down.Store(true)
	b.fail = func(context.Context, outbox.Message) error {
		if down.Load() {
			return errRefused
		}
		return nil
	}
	o := quick
	o.MaxFailures = 1
	start(t, e, b, o)
	want := make(map[string][]string)
	for a := range 5 {
		name := "a" + strconv.Itoa(a)
		events, list := numbered(name, 3)
		want[name] = list
		d.write(e, events...)
	}
	b.until("6 failures", func(_ []outbox.Message, failures int) bool { return failures >= 6 })
	down.Store(false)
	for name, list := range want {
		b.gets(list...)
		if got := b.of(name); !slices.Equal(got, list) {
			t.Errorf("%s: %v were published, want %v", name, got, list)
		}
	}
	emptied(t, e)
	if s := check.Must(outbox.StatsOf(t.Context(), e))(t); s.ParkedAggregates != 0 || len(alarms.changed) != 0 {
		t.Errorf("the broker was down, and %d aggregates are parked, with %d alarms", s.ParkedAggregates, len(alarms.changed))
	}
}

// TestFailingEvent without a mark is parked when it fails while others succeed. A panic
// is a failure.
func TestFailingEvent(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func() error{"error": func() error { return errRefused }, "panic": func() error { panic("broken") }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alarms, b := newAlarms(), newBroker(t)
			d := onSQLite(t)
			e := newEngine(t, d.Store, semel.Options{Observer: alarms})
			failures := 0 // of one lane, which publishes one message at a time
			b.fail = func(_ context.Context, m outbox.Message) error {
				if m.Aggregate != "bad" {
					return nil
				}
				if failures++; failures > 1 { // a later failure counts only with a success before it
					d.write(e, about(otherLane("bad"), "good"))
					realtest.Poll(t, "the broker to confirm another message", func() bool { return d.rows("semel_outbox") == 1 })
				}
				return fails()
			}
			o := quick
			o.MaxFailures = 2
			start(t, e, b, o)
			d.write(e, about("bad", "bad"))
			if alarm := alarms.next(t); alarm.Kind != event.Parked {
				t.Errorf("the alarm is %v", alarm.Kind)
			}
			if p := check.Must(outbox.ParkedOf(t.Context(), e, 10))(t); len(p) != 1 || p[0].Failures != 3 {
				t.Errorf("the parked aggregates are %+v, want one after 3 attempts", p)
			}
		})
	}
}

// TestShares: two relays share the lanes, and one that stops gives its lanes back at once.
func TestShares(t *testing.T) { t.Parallel(); onAll(t, suite{shares[*sql.Tx], shares[pgx.Tx]}) }

func shares[Tx any](t *testing.T, d *database[Tx]) {
	t.Helper()
	o := quick
	o.Lease = time.Hour // nothing expires here
	b := newBroker(t)
	var engines []*semel.Engine[Tx]
	var by [2]atomic.Int64 // the messages of each relay
	var stop [2]func()
	for i := range by {
		e := newEngine(t, d.Store, semel.Options{})
		engines = append(engines, e)
		stop[i] = start(t, e, outbox.PublisherFunc(func(ctx context.Context, m outbox.Message) error {
			by[i].Add(1)
			return b.Publish(ctx, m)
		}), o)
	}
	// everyLane publishes a message in every lane, and returns how many each relay had. They may
	// repeat a message, so its callers try again.
	everyLane := func() [2]int64 {
		var events []outbox.Event
		for n := range store.OutboxLanes {
			events = append(events, about(inLane(n), "x"))
		}
		before, had := b.count(), [2]int64{by[0].Load(), by[1].Load()}
		d.write(engines[1], events...)
		b.until("a message in every lane", func(all []outbox.Message, _ int) bool { return len(all) >= before+len(events) })
		return [2]int64{by[0].Load() - had[0], by[1].Load() - had[1]}
	}
	realtest.Poll(t, "each relay to have half of the lanes", func() bool {
		return everyLane() == [2]int64{store.OutboxLanes / 2, store.OutboxLanes / 2}
	})
	stop[0]()
	ended := by[0].Load()
	realtest.Poll(t, "the second relay to have all lanes", func() bool { return everyLane() == [2]int64{0, store.OutboxLanes} })
	check.Equal(t, by[0].Load(), ended, "messages of the first relay, since it has ended")
	emptied(t, engines[1])
}

// inLane returns an aggregate of a lane.
func inLane(n int) string {
	for i := 0; ; i++ {
		if name := "a" + strconv.Itoa(i); outbox.LaneOf("orders", name) == n {
			return name
		}
	}
}
