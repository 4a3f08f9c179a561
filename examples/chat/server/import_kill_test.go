//go:build unix && !race

package server_test

import (
	"fmt"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/semelgo/semel/internal/realtest"
)

// TestImportSurvivesServerAndBroker kills servers before and after the commit of an
// import, and then the broker. One server starts again while the broker is down.
// Every message is written once, although some are redelivered.
func TestImportSurvivesServerAndBroker(t *testing.T) {
	t.Parallel()
	fullOnly(t)
	broker := realtest.OwnRabbitMQ(t) // it starts slowly, so two subtests share it
	imports := []*longImport{
		{rabbit: &rabbit{Broker: broker, queue: "sqlite"}, f: newFiles(t, inline)},
		{rabbit: &rabbit{Broker: broker, queue: "postgres"}, f: newPostgres(t, leased)},
	}
	each := func(do func(l *longImport)) {
		for _, l := range imports {
			do(l)
		}
	}
	each(func(l *longImport) { l.begin(t) })
	each(func(l *longImport) { l.killServers(t) })
	each(func(l *longImport) { l.send(t, 100) })
	broker.Kill()
	imports[0].s.stop(t)
	imports[0].start(t)
	broker.Start(t)
	each(func(l *longImport) {
		l.connect(t)
		l.send(t, 10)
	})
	each(func(l *longImport) {
		l.written(t)
		t.Logf("%s: %d messages, each written once; %d were delivered again after a kill", l.queue, len(l.texts), l.again)
	})
}

// longImport is an import that survives the end of servers and broker.
type longImport struct {
	*rabbit

	f     files
	s     *process
	ann   user
	group string
	texts []string
	again int64 // number of duplicate deliveries after the last kill
}

func (l *longImport) start(t *testing.T) {
	t.Helper()
	l.s = start(t, l.args(l.f.args(shortLease))...)
}

func (l *longImport) begin(t *testing.T) {
	t.Helper()
	l.connect(t)
	l.start(t)
	l.ann = l.s.signIn(t, "Ann")
	l.group = l.s.newGroup(t, l.ann, "crew")
	// The commit of a welcome must not be taken for that of an import.
	l.s.untilQueue(t, l.ann, "welcome_member", queueCount{Done: 1})
}

func (l *longImport) killServers(t *testing.T) {
	t.Helper()
	for i := range rounds(2) {
		l.s.arm(t, "kill", [...]string{importWritten, importCommitted}[i%2])
		l.send(t, 10)
		l.s.AwaitKilled(t)
		l.start(t)
		l.written(t)
		if i%2 == 1 { // the killed server had not acknowledged what it has committed
			realtest.Poll(t, "a second delivery", func() bool {
				l.again = l.s.importing(t, l.ann).Duplicates
				return l.again > 0
			})
		}
	}
}

// send publishes n more messages.
func (l *longImport) send(t *testing.T, n int) {
	t.Helper()
	messages := make([]amqp091.Publishing, n)
	for i := range messages {
		text := fmt.Sprintf("text %d", len(l.texts))
		l.texts = append(l.texts, text)
		messages[i] = outside(text, l.group, l.ann.ID, text)
	}
	l.publish(t, messages...)
}

// written waits until all messages are written.
func (l *longImport) written(t *testing.T) {
	t.Helper()
	l.s.untilQueue(t, l.ann, "import_message", queueCount{Done: int64(len(l.texts))})
	l.s.wantTexts(t, l.ann, l.group, l.texts)
}
