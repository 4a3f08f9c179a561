package brokers_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/twmb/franz-go/pkg/kfake"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/examples/brokers"
	"github.com/semelgo/semel/internal/realtest"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/semelotel"
	"github.com/semelgo/semel/semelwatermill"
	"github.com/semelgo/semel/store/sqlite"
)

const (
	orders   = 6
	versions = 5
)

// TestKafka uses kfake, which is not Kafka: an imitation of its protocol within this process.
func TestKafka(t *testing.T) {
	t.Parallel()
	cluster := must(kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, brokers.Topic)))
	t.Cleanup(cluster.Close)
	publisher := must(brokers.KafkaPublisher(cluster.ListenAddrs()...))
	subscriber := must(brokers.KafkaSubscriber("shipping", cluster.ListenAddrs()...))
	var mu sync.Mutex
	partitions := make(map[string]int32) // of each order
	used := make(map[int32]bool)
	roundTrip(t, publisher, subscriber, func(msg *message.Message) {
		mu.Lock()
		defer mu.Unlock()
		order := msg.Metadata.Get(semelwatermill.MetadataAggregate)
		p, ok := kafka.MessagePartitionFromCtx(msg.Context())
		if before, seen := partitions[order]; !ok || seen && before != p {
			t.Errorf("order %s is in the partitions %d and %d", order, before, p)
		}
		partitions[order], used[p] = p, true
	})
	mu.Lock()
	defer mu.Unlock()
	if len(used) < 2 {
		t.Errorf("%d partitions were used, so this test shows no order", len(used))
	}
}

// TestNATS uses a real server of NATS with JetStream, within this process.
func TestNATS(t *testing.T) {
	t.Parallel()
	s := must(server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true}))
	go s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	roundTrip(t, must(brokers.NATSPublisher(s.ClientURL())), must(brokers.NATSSubscriber("shipping", s.ClientURL())), func(*message.Message) {})
}

// roundTrip changes orders in one database, and waits until all changes are in another
// one. Each change has one effect, although messages are published twice, and those of an
// order are in order.
func roundTrip(t *testing.T, publisher message.Publisher, subscriber message.Subscriber, received func(*message.Message)) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	tracer := must(semelotel.New(semelotel.Options{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))}))
	_, shop := database(t, tracer, `CREATE TABLE orders (id TEXT PRIMARY KEY, version INT NOT NULL)`)
	shipping, shippingEngine := database(t, tracer, `CREATE TABLE shipped (number INTEGER PRIMARY KEY, order_id TEXT, version INT, text TEXT)`)

	var deliveries atomic.Int64
	router := must(brokers.Shipping(shippingEngine, subscriber, publisher))
	router.AddSubscriberDecorators(message.MessageTransformSubscriberDecorator(func(msg *message.Message) {
		deliveries.Add(1)
		received(msg)
	}))
	relay := must(outbox.NewRelay(shop, publishTwice(semelwatermill.Publisher(publisher)), outbox.Options{}))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	for name, run := range map[string]func(context.Context) error{"router": router.Run, "relay": relay.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	t.Cleanup(func() { cancel(); running.Wait() })

	for v := range versions {
		for o := range orders {
			order := fmt.Sprint("order-", o)
			for range 2 { // the second call is a retry: it changes and publishes nothing
				if got := must(brokers.ChangeOrder(t.Context(), shop, fmt.Sprint(order, "/", v), brokers.Change{Order: order, Text: fmt.Sprint("change ", v+1)})); got != v+1 {
					t.Errorf("ChangeOrder = version %d, want %d", got, v+1)
				}
			}
		}
	}
	const expected = orders*versions + versions + (orders-1)*(versions-1)
	changes := func() (n int) {
		if err := shipping.QueryRowContext(t.Context(), `SELECT count(*) FROM shipped`).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	// A slow broker may deliver a message once more, before it delivers the last one.
	realtest.Poll(t, "all deliveries and repetitions", func() bool { return deliveries.Load() >= expected && changes() >= orders*versions })
	cancel()
	running.Wait() // the router has handled all deliveries
	if all := changes(); all != orders*versions {
		t.Errorf("%d changes were shipped, want each of %d once", all, orders*versions)
	}
	for o := range orders {
		for i, got := range shipped(t, shipping, fmt.Sprint("order-", o)) {
			if want := fmt.Sprintf("%d: change %d", i+1, i+1); got != want {
				t.Errorf("order %d: the change %q was shipped, want %q", o, got, want)
			}
		}
	}
	checkTraces(t, spans.Ended())
}

// checkTraces: each change was shipped in its own trace, which the broker has carried.
func checkTraces(t *testing.T, spans []sdktrace.ReadOnlySpan) {
	t.Helper()
	changed := make(map[trace.SpanID]trace.TraceID)
	for _, s := range spans {
		if s.Name() == "run change_order" {
			changed[s.SpanContext().SpanID()] = s.SpanContext().TraceID()
		}
	}
	handled := make(map[trace.SpanID]bool)
	for _, s := range spans {
		if s.Name() != "run ship_order" {
			continue
		}
		if changed[s.Parent().SpanID()] != s.SpanContext().TraceID() {
			t.Errorf("a change was shipped as a child of %v, want the run that made the change", s.Parent())
		}
		handled[s.Parent().SpanID()] = true
	}
	if len(handled) != orders*versions {
		t.Errorf("the runs of %d changes have a child, want %d", len(handled), orders*versions)
	}
}

// publishTwice loses the first confirmation of each event of one order, so that the relay
// publishes it again. The events of other orders come again after the next one of the order,
// as from a relay that was paused.
func publishTwice(to outbox.Publisher) outbox.Publisher {
	var confirmed, before sync.Map
	return outbox.PublisherFunc(func(ctx context.Context, m outbox.Message) error {
		if err := to.Publish(ctx, m); err != nil {
			return err
		}
		if m.Aggregate == "order-0" {
			if _, again := confirmed.LoadOrStore(m.ID, true); !again {
				return errors.New("the confirmation is lost")
			}
			return nil
		}
		if earlier, ok := before.Swap(m.Aggregate, m); ok {
			return to.Publish(ctx, earlier.(outbox.Message))
		}
		return nil
	})
}

// shipped returns the changes of an order in the order in which they were handled.
func shipped(t *testing.T, db *sql.DB, order string) (all []string) {
	t.Helper()
	rows := must(db.QueryContext(t.Context(), `SELECT version || ': ' || text FROM shipped WHERE order_id = ? ORDER BY number`, order))
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil || len(all) != versions {
		t.Errorf("%d changes of %s were shipped: %v, want %d", len(all), order, err, versions)
	}
	return all
}

func database(t *testing.T, tracer event.Tracer, table string) (*sql.DB, *semel.Engine[*sql.Tx]) {
	t.Helper()
	db := must(sqlite.Open(filepath.Join(t.TempDir(), "semel.db")))
	t.Cleanup(func() { _ = db.Close() })
	if err := sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	e := must(semel.New(sqlite.New(db, sqlite.Options{}), semel.Options{Tracer: tracer}))
	t.Cleanup(func() { _ = e.Close(context.WithoutCancel(t.Context())) })
	return db, e
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprint("set up: ", err))
	}
	return v
}
