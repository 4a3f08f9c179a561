package alerts_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/semelotel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

var (
	scope   = semel.ScopeOf("shop")
	errBoom = errors.New("boom")
	failure = semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Lease: 300 * time.Millisecond}

	fine         = semel.Define("fine", semel.OperationOptions[string]{Wait: time.Millisecond})
	unknown      = semel.Define("unknown", semel.OperationOptions[string]{})
	contradicted = semel.Define("contradicted", semel.OperationOptions[string]{})
	unrecorded   = semel.Define("unrecorded", semel.OperationOptions[string]{})
	altered      = semel.Define("altered", semel.OperationOptions[string]{})
	givenUp      = semel.Define("given_up", semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Retry: &semel.Retry{MaxErrors: 1, Redelivered: true}})
	stuck        = semel.Define("stuck", semel.OperationOptions[string]{Retry: &semel.Retry{}})
	interrupted  = semel.Define("interrupted", failure)
	crashing     = semel.Define("crashing", failure)
	reused       = semel.Define("reused", semel.OperationOptions[string]{})
	refused      = semel.Define("refused", semel.OperationOptions[string]{})
)

// shop is a program whose store and broker fail when the test wants it.
type shop struct {
	*semel.Engine[*sql.Tx]

	telemetry *semelotel.Telemetry
	faults    *storetest.FaultyTx[*sql.Tx]
	store     store.TxStore[*sql.Tx]
	broken    atomic.Bool  // the broker refuses events
	stop      func() error // ends the watch
}

// newEngine makes an engine that ends with the test.
func newEngine(t *testing.T, s store.TxStore[*sql.Tx], telemetry *semelotel.Telemetry, operations ...semel.Declared) *semel.Engine[*sql.Tx] {
	t.Helper()
	e := check.Must(semel.New(s, semel.Options{
		Observer: telemetry, Tracer: telemetry, Operations: operations, MaxUnrecorded: 1,
	}))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		check.NoError(t, e.Close(ctx), "close the engine")
	})
	return e
}

// watched has the store of an engine watched, which is read with each scrape.
func watched(t *testing.T, telemetry *semelotel.Telemetry, e semel.Runner) (stop func() error) {
	t.Helper()
	return check.Must(telemetry.Watch(e, semelotel.WatchOptions{Every: time.Nanosecond}))(t)
}

func newShop(t *testing.T, telemetry *semelotel.Telemetry) *shop {
	t.Helper()
	t.Attr("engine", "sqlite")
	s := &shop{telemetry: telemetry}
	s.store, _ = newStore(t)
	s.faults = storetest.NewFaultyTx(s.store, nil)
	s.Engine = newEngine(t, s.faults, telemetry, stuck, givenUp)
	s.stop = watched(t, telemetry, newEngine(t, s.store, telemetry))
	t.Cleanup(func() { s.faults.Decide(nil) }) // before the engines are closed
	relay := check.Must(outbox.NewRelay(s.Engine, outbox.PublisherFunc(s.publish), outbox.Options{Poll: 50 * time.Millisecond}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx) }()
	t.Cleanup(func() { cancel(); check.NoError(t, <-ended, "the relay") })
	return s
}

// publish is the broker.
func (s *shop) publish(_ context.Context, m outbox.Message) error {
	switch {
	case m.Type == "refused":
		return outbox.Permanent(errBoom)
	case s.broken.Load():
		return errBoom
	default:
		return nil
	}
}

// do calls an operation whose function returns a result and an error.
func (s *shop) do(t *testing.T, op *semel.Operation[string], key, result string, err error) error {
	t.Helper()
	_, _, got := semel.Do(t.Context(), s, op.Call(scope, key, "a"), func(context.Context) (string, error) { return result, err })
	return got
}

// announce appends an event in a transaction of an operation.
func (s *shop) announce(t *testing.T, key, aggregate, kind string) {
	t.Helper()
	_, _, err := semel.DoTx(t.Context(), s.Engine, fine.Call(scope, key, "a"), func(ctx context.Context, tx *sql.Tx) (string, error) {
		return "", outbox.AppendTx(ctx, s.Engine, tx, outbox.Event{Topic: "orders", Aggregate: aggregate, Type: kind})
	})
	check.Require(t, err)
}

// isWell does what a program does all day: runs, replays, waits and events.
func (s *shop) isWell(t *testing.T) {
	t.Helper()
	for range 2 {
		s.announce(t, "told", "1", "placed")
		check.Require(t, s.do(t, fine, "done", "a", nil))
	}
	_, _, err := semel.Do(t.Context(), s, fine.Call(scope, "waited", "a"), func(context.Context) (string, error) {
		check.ErrorIs(t, s.do(t, fine, "waited", "", nil), semel.ErrInProgress, "a second call")
		return "", nil
	})
	check.Require(t, err)
}

// fails makes every failure that has an alert, but for those of the watch.
func (s *shop) fails(t *testing.T) {
	t.Helper()
	check.Fails(t, s.do(t, unknown, "1", "", errBoom), "an unknown effect")
	_, _, err := semel.DoTx(t.Context(), s.Engine, contradicted.Call(scope, "1", "a"), func(_ context.Context, tx *sql.Tx) (string, error) {
		return "", errors.Join(tx.Commit(), errBoom)
	})
	check.Fails(t, err, "a handler that committed by itself")
	check.NoError(t, s.do(t, altered, "1", "x\xff", nil), "a result that JSON alters")
	check.Fails(t, s.do(t, givenUp, "1", "", errBoom), "the last attempt of a message")
	_, err = semel.Enqueue(t.Context(), s, stuck.Call(scope, "1", "a"), semel.EnqueueOptions{})
	check.NoError(t, err, "a task without a worker")
	for range 6 {
		_, _, err := semel.Do(t.Context(), s, reused.Call(scope, "1", fmt.Sprint(time.Now())), func(context.Context) (string, error) { return "", nil })
		if err != nil {
			check.ErrorIs(t, err, semel.ErrMismatch, "another request")
		}
	}
	s.broken.Store(true)
	s.announce(t, "late", "2", "placed")
	s.announce(t, "parked", "3", "refused")
	_, err = semel.New(memory.New(memory.Options{}), semel.Options{Observer: s.telemetry, Survive: store.NoFailure})
	check.NoError(t, err, "a store that may lose records")
	s.crash(t)
	s.losesItsStore(t)
}

// crash leaves attempts whose processes cannot renew their leases. A sweeper settles those of
// the one operation that it knows.
func (s *shop) crash(t *testing.T) {
	t.Helper()
	var left []*adapter.Attempt
	for i := range 3 {
		for _, op := range []*semel.Operation[string]{interrupted, crashing} {
			a, _, err := adapter.Begin(t.Context(), s, op.Call(scope, fmt.Sprint(i), "a"))
			check.Require(t, err)
			left = append(left, a)
		}
	}
	s.faults.Decide(func(c storetest.Call) storetest.Fault {
		if c.To() == store.InProgress && c.Changes[0].To.Operation != outbox.Operation {
			return storetest.Refuse()
		}
		return storetest.Fault{}
	})
	for _, a := range left {
		<-a.Context().Done()
		check.ErrorIs(t, context.Cause(a.Context()), semel.ErrLeaseLost, "the end of an attempt")
		t.Cleanup(a.Abandon)
	}
	// The clock of the store decides, by which a lease that is renewed late expires a moment later.
	e, requeued := newEngine(t, s.store, s.telemetry, crashing), 0
	realtest.Poll(t, "the expiry of the leases", func() bool {
		requeued += check.Must(admin.Sweep(t.Context(), e, 10))(t).Requeued
		return requeued >= 3
	})
	check.Equal(t, requeued, 3, "records of dead processes")
}

// losesItsStore runs calls whose outcomes the store does not take, and calls that it does not
// take at all.
func (s *shop) losesItsStore(t *testing.T) {
	t.Helper()
	s.faults.Decide(func(c storetest.Call) storetest.Fault {
		switch {
		case len(c.Changes) == 0:
			return storetest.Fault{}
		case c.Changes[0].To.Operation == "refused", c.To() == store.Succeeded && c.Changes[0].To.Operation == "unrecorded":
			return storetest.Refuse()
		default:
			return storetest.Fault{}
		}
	})
	for i := range 2 {
		check.NoError(t, s.do(t, unrecorded, fmt.Sprint(i), "", nil), "an effect whose outcome is not recorded")
		check.ErrorIs(t, s.do(t, refused, fmt.Sprint(i), "", nil), semel.ErrUnavailable, "a store that does not answer")
	}
}
