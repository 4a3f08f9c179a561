//go:build unix

package messages_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/migrate"
)

// world is a broker and a database, with what is to happen once in tables that let
// it happen as often as it does.
type world struct {
	consumer

	broker *realtest.Broker
	db     *pgxpool.Pool
	seen   *marks
}

func newWorld(t *testing.T, broker *realtest.Broker) *world {
	t.Helper()
	t.Attr("engine", "postgres")
	t.Attr("engine", "rabbitmq")
	w := &world{broker: broker, seen: new(marks)}
	w.consumer = consumer{Postgres: realtest.Postgres(t).Database(t), AMQP: broker.URL(), Way: plain}
	var err error
	if w.db, err = pgxpool.New(t.Context(), w.Postgres); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.db.Close)
	if err := migrate.Postgres(t.Context(), w.db); err != nil {
		t.Fatal(err)
	}
	if _, err := w.db.Exec(t.Context(), `
create table effects (message text not null);
create table charges (key text primary key, message text not null);
create table processed_messages (message_id text primary key)`); err != nil {
		t.Fatal(err)
	}
	return w
}

// at is the world with a queue of its own, and nothing seen.
func (w *world) at(t *testing.T) *world {
	t.Helper()
	own := &world{consumer: w.consumer, broker: w.broker, db: w.db, seen: new(marks)}
	own.Queue = w.broker.Queue(t)
	declare(t, own.AMQP, own.Queue)
	return own
}

// count runs a query for one number.
func (w *world) count(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	if err := w.db.QueryRow(context.WithoutCancel(t.Context()), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// publish sends messages to the queue.
func (w *world) publish(t *testing.T, ids ...string) {
	t.Helper()
	if err := publish(t.Context(), w.AMQP, w.Queue, ids...); err != nil {
		t.Fatal(err)
	}
}

// dead is how many messages were rejected.
func (w *world) dead(t *testing.T) int {
	t.Helper()
	n, err := waiting(w.AMQP, w.Queue+".dead")
	if err != nil {
		t.Fatal(err)
	}
	return n
}
