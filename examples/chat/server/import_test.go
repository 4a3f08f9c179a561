package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// importer is a server that imports messages into a group.
type importer struct {
	*localServer
	*rabbit

	f     files
	ann   user
	group string
}

func newImporter(t *testing.T, f files, to server.Hooks) *importer {
	t.Helper()
	i := &importer{rabbit: newRabbit(t), f: f}
	i.localServer = serveLocal(t, to, i.args(f.args(time.Minute))...)
	i.ann = i.signIn(t, "Ann")
	i.group = i.newGroup(t, i.ann, "crew")
	return i
}

// TestImportedMessagesAreWrittenOnce publishes each message several times.
func TestImportedMessagesAreWrittenOnce(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) files{
		"inline":          func(t *testing.T) files { return newFiles(t, inline) },
		"records":         func(t *testing.T) files { return newFiles(t, records) },
		"postgres inline": func(t *testing.T) files { return newPostgres(t, inline) },
		"postgres leased": func(t *testing.T) files { return newPostgres(t, leased) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newImporter(t, open(t), server.Hooks{})
			var texts []string
			delivered := 0
			for n := range 30 {
				texts = append(texts, fmt.Sprintf("text %d", n))
				for range 1 + n%3 {
					i.publish(t, outside(fmt.Sprint(n), i.group, i.ann.ID, texts[n]))
					delivered++
				}
			}
			i.untilQueue(t, i.ann, "import_message", queueCount{Done: 30})
			// Of two concurrent duplicates the second may be delayed and redelivered.
			got := i.untilImport(t, i.ann, "each delivery has its end", func(r importReport) bool {
				return r.Written+r.Duplicates == int64(delivered) && r.Delivered == int64(delivered)+r.PutOff
			})
			if got.Written != 30 || got.Dead != 0 {
				t.Errorf("the import is %+v, want 30 written", got)
			}
			i.wantTexts(t, i.ann, i.group, texts)
		})
	}
}

// TestInvalidMessagesBecomeDeadLetters: an invalid message becomes a dead letter with the
// reason, unchanged, and does not block other messages.
func TestInvalidMessagesBecomeDeadLetters(t *testing.T) {
	t.Parallel()
	i := newImporter(t, newFiles(t, inline), server.Hooks{})
	i.signIn(t, "Stranger")
	good := outside("1", i.group, 1, "good")
	change := func(fn func(m *amqp091.Publishing)) amqp091.Publishing {
		m := outside("x", i.group, 1, "bad")
		fn(&m)
		return m
	}
	bad := map[string]amqp091.Publishing{
		"no message_id":                change(func(m *amqp091.Publishing) { m.MessageId = "" }),
		"no app_id":                    change(func(m *amqp091.Publishing) { m.AppId = "" }),
		"not one JSON object":          change(func(m *amqp091.Publishing) { m.Body = []byte("hello") }),
		"not UTF-8":                    change(func(m *amqp091.Publishing) { m.Body = []byte("{\"body\":\"\xff\"}") }),
		`no field "colour"`:            change(func(m *amqp091.Publishing) { m.Body = []byte(`{"colour":"red"}`) }),
		`The field "group" is missing`: change(func(m *amqp091.Publishing) { m.Body = []byte(`{"sender":1,"body":"b"}`) }),
		`"sender" must be a user's`:    change(func(m *amqp091.Publishing) { m.Body = []byte(`{"group":"g","sender":0,"body":"b"}`) }),
		`"body" must not be empty`:     change(func(m *amqp091.Publishing) { m.Body = []byte(`{"group":"g","sender":1,"body":" "}`) }),
		"User 2 does not belong":       outside("2", i.group, 2, "from a stranger"),
		"to the group grp_none":        outside("3", "grp_none", 1, "to nobody"),
		"another request":              outside("1", i.group, 1, "something else"),
		"more than 240 bytes":          outside(strings.Repeat("i", 240), i.group, 1, "a long id"),
	}
	i.publish(t, good)
	i.untilQueue(t, i.ann, "import_message", queueCount{Done: 1})
	for _, m := range bad {
		i.publish(t, m)
	}
	i.untilImport(t, i.ann, "all are kept", func(r importReport) bool { return r.Dead == int64(len(bad)) })
	i.untilQueue(t, i.ann, "import_message", queueCount{Done: 1, Failed: 2})
	named := change(func(m *amqp091.Publishing) {
		m.AppId, m.Headers = "", amqp091.Table{"producer": "crm"}
	})
	i.publish(t, named)
	i.untilQueue(t, i.ann, "import_message", queueCount{Done: 2, Failed: 2})
	i.wantTexts(t, i.ann, i.group, []string{"good", "bad"})
	i.wantDead(t, bad)
}

// wantDead compares the dead letters and their reasons.
func (i *importer) wantDead(t *testing.T, want map[string]amqp091.Publishing) {
	t.Helper()
	found := make(map[string]string)
	// The server counts a dead letter before the broker has it.
	realtest.Poll(t, "each dead letter", func() bool { return i.left(t, ".dead") == len(want) })
	for n := range want {
		d, ok, err := i.ch.Get(i.queue+".dead", true)
		if err != nil || !ok {
			t.Fatalf("there is no dead letter for %q, %v", n, err)
		}
		reason, _ := d.Headers["chat-reason"].(string)
		for part, m := range want {
			if strings.Contains(reason, part) && string(d.Body) == string(m.Body) && d.MessageId == m.MessageId {
				found[part] = reason
			}
		}
	}
	for part := range want {
		if found[part] == "" {
			t.Errorf("no dead letter says %q; found %q", part, found)
		}
	}
	check.Equal(t, i.left(t, ""), 0, "messages in the queue")
}

// TestFailedImportIsRedelivered: a message whose import failed waits in a delay
// queue and is then redelivered.
func TestFailedImportIsRedelivered(t *testing.T) {
	t.Parallel()
	fullOnly(t)
	var tries atomic.Int64
	i := newImporter(t, newFiles(t, inline), server.Hooks{Import: func(next server.ImportFunc) server.ImportFunc {
		return func(ctx context.Context, tx chatdb.Tx, in server.Imported) error {
			if err := next(ctx, tx, in); err != nil || tries.Add(1) > 1 {
				return err
			}
			return errors.New("the disk is full")
		}
	}})
	i.publish(t, outside("1", i.group, i.ann.ID, "hello"))
	// The server counts a message a moment after it was written.
	if got := i.untilImport(t, i.ann, "the message is written", func(r importReport) bool { return r.Written > 0 }); got.PutOff < 1 || got.Written != 1 || tries.Load() != 2 {
		t.Errorf("the import is %+v after %d tries, want one put off, and 2 tries", got, tries.Load())
	}
	i.wantTexts(t, i.ann, i.group, []string{"hello"})
}

// TestStopFinishesTheImport: a stopping server finishes the running import and
// leaves the other messages in the queue.
func TestStopFinishesTheImport(t *testing.T) {
	t.Parallel()
	fullOnly(t)
	b := newBarrier()
	to := server.Hooks{Import: func(next server.ImportFunc) server.ImportFunc {
		return func(ctx context.Context, tx chatdb.Tx, in server.Imported) error {
			b.pass()
			return next(ctx, tx, in)
		}
	}}
	i := newImporter(t, newFiles(t, inline), to)
	b.armed.Store(true)
	for n := range 3 {
		i.publish(t, outside(fmt.Sprint(n), i.group, i.ann.ID, fmt.Sprint(n)))
	}
	<-b.arrived
	i.stopAt(t, b)
	// The broker sees the closed connection a moment later.
	realtest.Poll(t, "two messages in the queue", func() bool { return i.left(t, "") == 2 })
	again := serveLocal(t, server.Hooks{}, i.args(i.f.args(time.Minute))...)
	got := again.untilImport(t, i.ann, "the rest is written", func(r importReport) bool { return r.Written == 2 })
	check.Equal(t, got.Duplicates, 0, "duplicates: what was finished was acknowledged")
	again.wantTexts(t, i.ann, i.group, []string{"0", "1", "2"})
}

// TestFailedImportIsRedriven: a failed import stays failed when the message
// is redelivered, until an operator redrives it.
func TestFailedImportIsRedriven(t *testing.T) {
	t.Parallel()
	fullOnly(t)
	i := newImporter(t, newFiles(t, records), server.Hooks{})
	bob := i.signIn(t, "Bob")
	m := outside("1", i.group, bob.ID, "I am in")
	for n := range 2 {
		i.publish(t, m)
		i.untilImport(t, i.ann, "it is refused", func(r importReport) bool { return r.Dead == int64(n+1) })
	}
	list, code := i.f.operator(t, "failed")
	id, rest, _ := strings.Cut(list, "  ")
	if code != 0 || strings.Count(list, "\n") != 1 || !strings.HasPrefix(rest, "import_message, attempt 1, failed ") {
		t.Fatalf("failed: exit %d, %q", code, list)
	}
	add := request{method: "POST", path: "/v1/groups/" + i.group + "/members", as: i.ann, body: `{"member_ids":[2]}`}
	i.send(t, add).want(t, http.StatusOK, "")
	if text, code := i.f.operator(t, "redrive", id, "he is a member now"); code != 0 || text != id+" is Pending now\n" {
		t.Errorf("redrive: exit %d, %q", code, text)
	}
	i.publish(t, m, m)
	i.untilQueue(t, i.ann, "import_message", queueCount{Done: 1})
	i.wantTexts(t, bob, i.group, []string{"I am in"})
	if _, code := i.f.operator(t, "redrive", id, "again"); code != 1 {
		t.Errorf("redriving what has not failed: exit %d, want 1", code)
	}
}
