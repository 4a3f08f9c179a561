package semelwatermill_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/semelwatermill"
	"github.com/semelgo/semel/store/sqlite"
)

// TestOutboxToInbox: an event that is published twice is handled once.
func TestOutboxToInbox(t *testing.T) {
	t.Parallel()
	db := check.Must(sqlite.Open(filepath.Join(t.TempDir(), "semel.db")))(t)
	defer db.Close()
	check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	engine := check.Must(semel.New(sqlite.New(db, sqlite.Options{}), semel.Options{}))(t)
	pubsub := gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, watermill.NopLogger{})
	messages := check.Must(pubsub.Subscribe(t.Context(), "orders"))(t)
	to, lost := semelwatermill.Publisher(pubsub), false
	relay := check.Must(outbox.NewRelay(engine, outbox.PublisherFunc(func(ctx context.Context, m outbox.Message) error {
		if err := to.Publish(ctx, m); err != nil || lost {
			return err
		}
		lost = true
		return errors.New("the confirmation is lost")
	}), outbox.Options{}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx) }()
	place := semel.Define("place", semel.OperationOptions[string]{})
	_, _, err := semel.DoTx(t.Context(), engine, place.Call(semel.ScopeOf("ann"), "1", "book"), func(ctx context.Context, tx *sql.Tx) (string, error) {
		return "placed", outbox.AppendTx(ctx, engine, tx, outbox.Event{
			Topic: "orders", Aggregate: "order-1", Type: "Placed", Payload: []byte("book"), Headers: map[string]string{"trace": "t1"},
		})
	})
	check.Require(t, err)

	r, handled := newRig(t), 0
	handler := r.wrap(t, newInbox(t, inbox.Options[semel.Raw]{}), semelwatermill.Options{Name: semelwatermill.FromUUID("shop")},
		func(msg *message.Message) ([]*message.Message, error) {
			handled++
			if msg.Metadata.Get("trace") != "t1" || msg.Metadata.Get(semelwatermill.MetadataAggregate) != "order-1" ||
				msg.Metadata.Get(semelwatermill.MetadataType) != "Placed" || msg.Metadata.Get(semelwatermill.MetadataEventID) != msg.UUID {
				t.Errorf("the metadata is %v", msg.Metadata)
			}
			return nil, r.effect(msg)
		})
	var ids []string
	for range 2 {
		msg := <-messages
		ids = append(ids, msg.UUID)
		check.Must(handler(msg))(t)
		msg.Ack()
	}
	cancel()
	check.NoError(t, <-ended)
	if ids[0] != ids[1] || handled != 1 || r.effects("book") != 1 {
		t.Errorf("the messages %v were handled %d times, with %d effects, want the same ID and once", ids, handled, r.effects("book"))
	}
}
