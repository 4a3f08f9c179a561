package ops_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/store"
)

// relayOf returns functions that append events of an aggregate, and that run a relay until
// done reports true. Its publisher fails for the body "bad".
func relayOf[Tx any](t *testing.T, s store.TxStore[Tx]) (write func(bodies ...string), run func(done func() bool)) {
	t.Helper()
	e := check.Must(semel.New(s, semel.Options{Survive: store.NoFailure, RecordTimeout: time.Minute}))(t)
	add := semel.Define("append", semel.OperationOptions[[]string]{})
	write = func(bodies ...string) {
		_, _, err := semel.DoTx(t.Context(), e, add.Call(semel.ScopeOf("ann"), strings.Join(bodies, " "), bodies), func(ctx context.Context, tx Tx) (int, error) {
			for _, body := range bodies {
				if err := outbox.AppendTx(ctx, e, tx, outbox.Event{Topic: "orders", Aggregate: "order 1", Type: "Placed", Payload: []byte(body)}); err != nil {
					return 0, err
				}
			}
			return len(bodies), nil
		})
		check.Require(t, err)
	}
	run = func(done func() bool) {
		t.Helper()
		relay := check.Must(outbox.NewRelay(e, outbox.PublisherFunc(func(_ context.Context, m outbox.Message) error {
			if string(m.Payload) == "bad" {
				return outbox.Permanent(errors.New("the secret is 42"))
			}
			return nil
		}), outbox.Options{}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- relay.Run(ctx) }()
		realtest.Poll(t, "the relay", done)
		cancel()
		check.NoError(t, <-ended)
	}
	return write, run
}

// TestOutbox shows the lag and a parked aggregate, and redrives it.
func TestOutbox(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, s *testDB) {
		var write func(bodies ...string)
		var relay func(done func() bool)
		switch records := s.store.(type) {
		case store.TxStore[*sql.Tx]:
			write, relay = relayOf(t, records)
		case store.TxStore[pgx.Tx]:
			write, relay = relayOf(t, records)
		}
		var n struct {
			Events           int
			ParkedAggregates int `json:"parked_aggregates"`
			ParkedEvents     int `json:"parked_events"`
		}
		read := func() {
			check.Require(t, json.Unmarshal([]byte(s.must(t, "outbox", "stats", "--json")), &n))
		}
		write("good", "bad", "later")
		if read(); n.Events != 3 || n.ParkedAggregates != 0 {
			t.Errorf("outbox stats = %+v, want 3 events", n)
		}
		relay(func() bool { read(); return n.ParkedEvents == 2 })
		if n.Events != 0 || n.ParkedAggregates != 1 {
			t.Errorf("outbox stats = %+v, want 1 parked aggregate with 2 events", n)
		}
		if text := s.must(t, "outbox", "stats"); !strings.Contains(text, "PARKED EVENTS") {
			t.Errorf("outbox stats printed %q", text)
		}
		list := s.must(t, "outbox", "parked")
		if !strings.Contains(list, "order 1") || strings.Contains(list, "secret") {
			t.Errorf("outbox parked printed %q, want the aggregate without the error", list)
		}
		if shown := s.must(t, "outbox", "parked", "--reveal", "--json"); !strings.Contains(shown, "the secret is 42") || !strings.Contains(shown, `"kept_events": 2`) {
			t.Errorf("outbox parked --reveal --json printed %q", shown)
		}
		run(t, "outbox", "redrive", "orders", "order 2", "--reason", "why", "--actor", "ann", "--db", s.db).want(t, exit.Failed, "not parked")
		run(t, "outbox", "redrive", "orders", "order 1", "--actor", "ann", "--db", s.db).want(t, exit.Usage, "--reason is required")
		if notes := s.must(t, "outbox", "notes", "--json"); !strings.Contains(notes, `"notes": []`) {
			t.Errorf("outbox notes printed %q before a redrive, want none", notes)
		}
		run(t, "outbox", "parked", "--limit", "0", "--db", s.db).want(t, exit.Usage, "--limit")
		var parked struct {
			Aggregates []struct {
				EventID string `json:"event_id"`
			}
		}
		if err := json.Unmarshal([]byte(s.must(t, "outbox", "parked", "--json")), &parked); err != nil || len(parked.Aggregates) != 1 {
			t.Fatalf("outbox parked --json has %+v: %v", parked, err)
		}
		event, other := parked.Aggregates[0].EventID, "00000000-0000-7000-8000-000000000000"
		for _, flags := range [][]string{{"--drop", other}, {"--event", other}} {
			run(t, append([]string{"outbox", "redrive", "orders", "order 1", "--reason", "why", "--actor", "ann", "--db", s.db}, flags...)...).want(t, exit.Failed, "another event")
		}
		for _, flags := range [][]string{{"--drop", ""}, {"--event", ""}, {"--drop", event, "--event", event}} {
			run(t, append([]string{"outbox", "redrive", "orders", "order 1", "--reason", "why", "--actor", "ann", "--db", s.db}, flags...)...).want(t, exit.Usage, "--event")
		}
		if text := s.must(t, "outbox", "redrive", "orders", "order 1", "--drop", event, "--reason", "the body is broken", "--actor", "ann"); !strings.Contains(text, "redriven") {
			t.Errorf("outbox redrive printed %q", text)
		}
		relay(func() bool { read(); return n.Events+n.ParkedEvents == 0 })
		if n.ParkedAggregates != 0 {
			t.Errorf("outbox stats = %+v, want none", n)
		}
		run(t, "outbox", "notes", "--limit", "0", "--db", s.db).want(t, exit.Usage, "--limit")
		if text := s.must(t, "outbox", "notes"); !strings.Contains(text, "the body is broken") || !strings.Contains(text, "dropped") {
			t.Errorf("outbox notes printed %q", text)
		}
		var kept struct {
			Notes []struct {
				Topic, Aggregate, Actor, Reason string
				Dropped                         bool
				EventID                         string `json:"event_id"`
				EventType                       string `json:"event_type"`
			}
		}
		if err := json.Unmarshal([]byte(s.must(t, "outbox", "notes", "--json")), &kept); err != nil || len(kept.Notes) != 1 {
			t.Fatalf("outbox notes --json has %+v: %v, want the redrive that was made", kept, err)
		}
		if note := kept.Notes[0]; note.Topic != "orders" || note.Aggregate != "order 1" || note.Actor != "ann" || note.Reason != "the body is broken" ||
			!note.Dropped || note.EventType != "Placed" || len(note.EventID) != 36 {
			t.Errorf("the note is %+v", note)
		}
	})
}
