package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/storetest"
)

// TestPausedRelay: a relay is paused for longer than its lease, between the confirmation
// of a message and its removal. Another one publishes everything again; when the first
// one goes on, the database refuses its removal.
func TestPausedRelay(t *testing.T) {
	t.Parallel()
	onAll(t, suite{pausedRelay[*sql.Tx], pausedRelay[pgx.Tx]})
}

func pausedRelay[Tx any](t *testing.T, d *database[Tx]) {
	t.Helper()
	o := quick
	o.Lease, o.Batch = 300*time.Millisecond, 1
	paused := storetest.NewFaultyTx(d.Store, nil)
	first, second := newEngine(t, paused, semel.Options{}), newEngine(t, d.Store, semel.Options{})
	events, list := numbered("a", 5)
	b := newBroker(t)
	goOn, taken := make(chan struct{}), make(chan struct{})
	d.write(first, events...)
	var pause, once sync.Once
	stopFirst := start(t, first, outbox.PublisherFunc(func(ctx context.Context, m outbox.Message) error {
		err := b.Publish(ctx, m)
		pause.Do(func() { // at its first message: a slow machine may need the whole lease for it
			paused.Decide(func(storetest.Call) storetest.Fault { return storetest.Fault{Gate: goOn} })
			<-goOn // nothing of this process goes on any more
		})
		return err
	}), o)
	b.gets("a-0")
	blocked := make(chan struct{})
	o.Lease = time.Minute // the second relay loses no lane, however slow the machine is
	stopSecond := start(t, second, outbox.PublisherFunc(func(ctx context.Context, m outbox.Message) error {
		once.Do(func() { close(taken); <-blocked })
		return b.Publish(ctx, m)
	}), o)
	<-taken // the second relay has the lane, and has removed nothing
	close(goOn)
	realtest.Poll(t, "the first relay to try to remove", func() bool { return paused.CallsOf("Atomic") > 0 })
	stopFirst()
	if n := d.rows("semel_outbox"); n != len(events) {
		t.Errorf("%d events are left: a relay that has lost its lane has removed some", n)
	}
	close(blocked)
	b.gets(list...)
	emptied(t, second)
	stopSecond()
	if got := b.of("a"); !slices.Equal(got, list) {
		t.Errorf("the first publications are %v, want %v", got, list)
	}
	if b.count() != len(events)+1 {
		t.Errorf("%d messages were published, want all, and again the one that was not removed", b.count())
	}
}

// TestStoreFaults fails each call of a relay once, before and after it was applied. Every
// event is published in order, and the outbox is empty at the end. The statements of
// database/sql are those of the other handle of PostgreSQL, and MariaDB's differ only in what
// they do when they are repeated.
func TestStoreFaults(t *testing.T) {
	t.Parallel()
	every := []storetest.Fault{storetest.Refuse(), storetest.Abort(), storetest.Lose()}
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); storeFaults(t, onSQLite, 2, every...) })
	if !testing.Short() {
		t.Run("postgres", func(t *testing.T) { t.Parallel(); storeFaults(t, onPostgres, 2, every...) })
		t.Run("mariadb", func(t *testing.T) { t.Parallel(); storeFaults(t, onMariaDB, 1, storetest.Lose()) })
	}
}

// storeFaults fails the first calls of each method, each with each fault.
func storeFaults[Tx any](t *testing.T, open func(t *testing.T) *database[Tx], calls int, faults ...storetest.Fault) {
	t.Helper()
	for _, method := range []string{"Get", "Swap", "Lanes", "Head", "Atomic", "Remove", "Failed", "Park", "SetAside", "Unpark"} {
		for _, fault := range faults {
			if method != "Atomic" && fault.String() == "Abort" {
				continue // the same as Refuse
			}
			for n := range calls {
				t.Run(fmt.Sprintf("%s %d %s", method, n+1, fault), func(t *testing.T) {
					t.Parallel()
					oneFault(t, open(t), method, n+1, fault)
				})
			}
		}
	}
}

// oneFault fails the n-th call of a method while events are published, one of them is
// parked, and it is redriven.
func oneFault[Tx any](t *testing.T, d *database[Tx], method string, n int, fault storetest.Fault) {
	t.Helper()
	var failed atomic.Bool
	s := storetest.NewFaultyTx(d.Store, func(c storetest.Call) storetest.Fault {
		if c.Method == method && c.MethodN == n && failed.CompareAndSwap(false, true) {
			return fault
		}
		return storetest.Fault{}
	})
	alarms, b := newAlarms(), newBroker(t)
	e := newEngine(t, s, semel.Options{Observer: alarms, Lease: 500 * time.Millisecond})
	writer := newEngine(t, d.Store, semel.Options{})
	var broken atomic.Bool
	broken.Store(true)
	b.fail = func(_ context.Context, m outbox.Message) error {
		if string(m.Payload) == "bad-1" && broken.Load() {
			return outbox.Permanent(errRefused)
		}
		return nil
	}
	stop := start(t, e, b, quick)
	neighbour := sameLane("bad")
	bad, wantBad := numbered("bad", 3)
	good, wantGood := numbered(neighbour, 3)
	d.write(writer, append(bad, good...)...)
	alarms.next(t)
	b.gets(wantGood...)
	d.write(writer, about("bad", "bad-3")) // is set aside
	emptied(t, writer)
	broken.Store(false)
	if was, err := outbox.Redrive(t.Context(), writer, redriveOf("bad")); !was || err != nil {
		t.Fatalf("Redrive: %v, %v", was, err)
	}
	b.gets("bad-3")
	emptied(t, writer)
	stop() // and another relay, so that each method has its second call
	start(t, e, b, quick)
	d.write(writer, about(neighbour, "last"))
	b.gets("last")
	emptied(t, writer)
	for name, want := range map[string][]string{"bad": append(wantBad, "bad-3"), neighbour: append(wantGood, "last")} {
		if got := b.of(name); !slices.Equal(got, want) {
			t.Errorf("%s: the first publications are %v, want %v", name, got, want)
		}
	}
	if s := check.Must(outbox.StatsOf(t.Context(), writer))(t); s != (outbox.Stats{}) {
		t.Errorf("%+v remain", s)
	}
	if once := method == "Park" || method == "Failed" || method == "Unpark"; !failed.Load() && (n == 1 || !once) {
		t.Errorf("the call was never made, so this test shows nothing")
	}
}

// TestAppendFaults: an append without a reply rolls its operation back. A retry publishes
// one event.
func TestAppendFaults(t *testing.T) {
	t.Parallel()
	onAll(t, suite{appendFaults[*sql.Tx], appendFaults[pgx.Tx]})
}

func appendFaults[Tx any](t *testing.T, d *database[Tx]) {
	t.Helper()
	s, b := storetest.NewFaultyTx(d.Store, nil), newBroker(t)
	e := newEngine(t, s, semel.Options{})
	start(t, e, b, quick)
	var want []string
	for _, method := range []string{"Append", "Atomic"} {
		for _, fault := range []storetest.Fault{storetest.Refuse(), storetest.Abort(), storetest.Lose()} {
			body := method + " " + fault.String()
			var failed atomic.Bool
			id := place.Call(semel.ScopeOf("ann"), body, struct{}{})
			s.Decide(func(c storetest.Call) storetest.Fault {
				if c.Method == method && (method == "Append" || c.ID == store.NewID("place", id.Scope().Bytes(), id.Key())) && failed.CompareAndSwap(false, true) {
					return fault
				}
				return storetest.Fault{}
			})
			for range 2 {
				if _, _, err := semel.DoTx(t.Context(), e, id, placed(e, body, nil)); err == nil {
					break
				}
			}
			if !failed.Load() {
				t.Errorf("%s was never made", method)
			}
			want = append(want, body)
			b.gets(body)
		}
	}
	emptied(t, e)
	if got := b.of("a"); !slices.Equal(got, want) || b.count() != len(want) {
		t.Errorf("%v were published in %d messages, want %v once each", got, b.count(), want)
	}
}
