package server_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/load"
	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/outbox"
)

// TestLiveDeliveryThroughOutages kills the broker, or the database with its NOTIFY, while clients send
// messages through two servers, and starts it again. Every message is stored once, every client has a
// complete view without duplicates (package load verifies both), and the stream of a session that was
// revoked just before ends.
func TestLiveDeliveryThroughOutages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Run("rabbitmq", func(t *testing.T) {
		t.Parallel()
		broker, f := realtest.OwnRabbitMQ(t), newPostgres(t, inline)
		through(t, 1, append(f.args(shortOutageLease), "-bus", broker.URL()), broker.Kill, func() { broker.Start(t) })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		db := realtest.OwnPostgres(t, "synchronous_commit=on")
		f := files{mode: inline, postgres: db.Database(t)}
		through(t, 2, f.args(shortOutageLease), db.Kill, func() { db.Start(t) })
	})
}

// through runs two servers with these arguments under load, with some outages.
func through(t *testing.T, outages int, args []string, kill, start func()) {
	t.Helper()
	published := make(chan struct{}, 1)
	counted := server.Hooks{Publish: func(next outbox.Publisher) outbox.Publisher {
		return outbox.PublisherFunc(func(ctx context.Context, m outbox.Message) error {
			err := next.Publish(ctx, m)
			if err == nil {
				select {
				case published <- struct{}{}:
				default:
				}
			}
			return err
		})
	}}
	one, two := serveLocal(t, counted, args...), serveLocal(t, counted, args...)
	ann := one.signIn(t, "ann")
	ended := make(chan error, 1)
	go func() {
		_, err := load.Run(t.Context(), load.Options{
			Servers: []string{one.base, two.base}, Clients: 24, Messages: 600, Rate: 50, Drop: 3 * time.Second, Patience: patience,
		})
		ended <- err
	}()
	for range outages {
		for range 50 {
			<-published
		}
		lost := two.logIn(t, "ann", "lost phone")
		listens := two.listen(t, lost, "")
		one.settled(t, request{method: "DELETE", path: "/v1/sessions/current", as: lost}).want(t, http.StatusNoContent, "")
		kill()
		start()
		listens.wantRevoked(t)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	one.send(t, request{method: "GET", path: "/v1/groups", as: ann}).want(t, http.StatusOK, "")
}
