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

// TestChatsOnOneBroker: chats with different databases do not hear one another on one virtual host,
// although their users have the same numbers, and the servers of one database do.
func TestChatsOnOneBroker(t *testing.T) {
	t.Parallel()
	broker := realtest.RabbitMQ(t)
	var chats [2]*localServer
	var users [2]user
	var streams [2]*stream
	var shared []string
	for i := range chats {
		args := append(newFiles(t, "inline").args(time.Minute), "-bus", broker.URL())
		chats[i], shared = serveLocal(t, server.Hooks{}, args...), args
		users[i] = chats[i].signIn(t, "ann")
		streams[i] = chats[i].listen(t, users[i], "")
	}
	if users[0].ID != users[1].ID {
		t.Fatalf("users %d and %d, want the same number", users[0].ID, users[1].ID)
	}
	created := map[string]int{} // the chat of each group
	hears := func(i int, s *stream, name string) {
		t.Helper()
		created[name] = i
		chats[i].send(t, creation(users[i], name, name)).want(t, http.StatusCreated, "")
		for got := ""; got != name; {
			push := s.until(t, "group", "resync")
			if push["push"] == "resync" { // the server has subscribed after the stream began, perhaps after the event
				chats[i].send(t, creation(users[i], name+" again", name)).want(t, http.StatusCreated, "")
				push = s.until(t, "group")
			}
			got = push["detail"].(map[string]any)["name"].(string) // another group of this chat if the relay repeats its event
			if chat, known := created[got]; !known || chat != i {
				t.Fatalf("a stream of chat %d receives the group %q of another chat", i, got)
			}
		}
	}
	hears(0, streams[0], "theirs")
	hears(1, streams[1], "ours")
	second := serveLocal(t, server.Hooks{}, shared...)
	hears(1, second.listen(t, users[1], ""), "ours too")
}

// TestLiveDeliveryThroughOutages kills the broker, or the database with its NOTIFY, while clients send
// messages through two servers, and starts it again. Every message is stored once, every client has a
// complete view without duplicates (package load verifies both), and the stream of a session that was
// revoked just before ends.
func TestLiveDeliveryThroughOutages(t *testing.T) {
	t.Parallel()
	fullOnly(t)
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
	seen := server.Hooks{Publish: func(next outbox.Publisher) outbox.Publisher {
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
	one, two := serveLocal(t, seen, args...), serveLocal(t, seen, args...)
	ann := one.signIn(t, "ann")
	load := sendMessages(t, load.Options{
		Servers: []string{one.base, two.base}, Clients: 24, Messages: 300, Rate: 50, Drop: 3 * time.Second,
	})
	for range outages {
		for range 50 {
			select {
			case <-published:
			case <-load.failed:
				t.FailNow()
			}
		}
		lost := two.logIn(t, "ann", "lost phone")
		listens := two.listen(t, lost, "")
		one.settled(t, request{method: "DELETE", path: "/v1/sessions/current", as: lost}).want(t, http.StatusNoContent, "")
		kill()
		start()
		listens.wantRevoked(t)
	}
	load.calm()
	one.send(t, request{method: "GET", path: "/v1/groups", as: ann}).want(t, http.StatusOK, "")
}

// clients send messages until calm is called, and verify what they have seen.
type clients struct {
	failed <-chan struct{} // closed when something was wrong
	calm   func()          // waits until all of the last messages were seen
}

// sendMessages runs the load again and again until calm is called, so that a test reaches each
// point under load on a slow machine too.
func sendMessages(t *testing.T, options load.Options) *clients {
	t.Helper()
	options.Patience = patience
	failed, calm, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			report, err := load.Run(t.Context(), options)
			if err != nil {
				t.Error(err)
				close(failed)
				return
			}
			report.Write(t.Output())
			select {
			case <-calm:
				return
			default:
			}
		}
	}()
	t.Cleanup(func() { <-ended })
	return &clients{failed, func() {
		close(calm)
		<-ended
	}}
}
