//go:build unix

package messages_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
)

// fixture is a broker and a database. The tables of effects have no unique
// constraint, so that a second effect would be seen.
type fixture struct {
	consumer

	broker *realtest.Broker
	db     *pgxpool.Pool
	seen   *counters
}

func newFixture(t *testing.T, broker *realtest.Broker) *fixture {
	t.Helper()
	t.Attr("engine", "postgres")
	t.Attr("engine", "rabbitmq")
	w := &fixture{broker: broker, seen: new(counters)}
	w.consumer = consumer{Postgres: realtest.Postgres(t).Database(t), AMQP: broker.URL(), Way: plain}
	var err error
	if w.db, err = pgxpool.New(t.Context(), w.Postgres); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.db.Close)
	check.Require(t, pgmigrate.Up(t.Context(), w.db, pgmigrate.Options{}))
	check.Must(w.db.Exec(t.Context(), `
create table effects (message text not null);
create table charges (key text primary key, message text not null);
create table processed_messages (message_id text primary key)`))(t)
	return w
}

// at is the fixture with a queue of its own, and empty counters.
func (w *fixture) at(t *testing.T) *fixture {
	t.Helper()
	own := &fixture{consumer: w.consumer, broker: w.broker, db: w.db, seen: new(counters)}
	own.Queue = w.broker.Queue(t)
	declare(t, own.AMQP, own.Queue)
	return own
}

// count runs a query for one number.
func (w *fixture) count(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	check.Require(t, w.db.QueryRow(context.WithoutCancel(t.Context()), query, args...).Scan(&n))
	return n
}

// publish sends messages to the queue.
func (w *fixture) publish(t *testing.T, ids ...string) {
	t.Helper()
	check.Require(t, publish(t.Context(), w.AMQP, w.Queue, ids...))
}

// endLease ends the lease that a dead consumer has of a message, if it has one.
func (w *fixture) endLease(t *testing.T, id string) {
	t.Helper()
	check.Must(w.db.Exec(t.Context(), `update semel_records set due = clock_timestamp()
where state = 2 and convert_from(key, 'UTF8') like '%:' || $1`, id))(t)
}

// dead is the number of rejected messages.
func (w *fixture) dead(t *testing.T) int {
	t.Helper()
	n := check.Must(queueLength(w.AMQP, w.Queue+".dead"))(t)
	return n
}
