package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/realtest"
)

// TestChatsOnOneBroker: chats with different names of the bus do not hear one another, although
// their users have the same numbers.
func TestChatsOnOneBroker(t *testing.T) {
	t.Parallel()
	broker := realtest.RabbitMQ(t)
	var chats [2]*localServer
	var users [2]user
	var streams [2]*stream
	for i := range chats {
		args := append(newFiles(t, "inline").args(time.Minute), "-bus", broker.URL(), "-bus-name", broker.Queue(t))
		chats[i] = serveLocal(t, server.Hooks{}, args...)
		users[i] = chats[i].signIn(t, "ann")
		streams[i] = chats[i].listen(t, users[i], "")
	}
	if users[0].ID != users[1].ID {
		t.Fatalf("users %d and %d, want the same number", users[0].ID, users[1].ID)
	}
	for i, name := range []string{"theirs", "ours"} {
		chats[i].send(t, creation(users[i], "k", name)).want(t, http.StatusCreated, "")
		push := streams[i].until(t, "group", "resync")
		if push["push"] == "resync" { // the server has subscribed after the stream began, perhaps after the event
			chats[i].send(t, creation(users[i], "k2", name)).want(t, http.StatusCreated, "")
			push = streams[i].until(t, "group")
		}
		if got := push["detail"].(map[string]any)["name"]; got != name {
			t.Errorf("the stream of chat %d receives the group %v, want %s", i, got, name)
		}
	}
}
