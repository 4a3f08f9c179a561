//go:build unix

package messages_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// TestConsumersUnderKills delivers 1,500 messages, each of which its producer sends
// one to five times, to three processes. Every 200 messages one of these is killed. The
// broker is killed once, after the third of them, or later if no message has been
// redelivered yet. One message in fifty fails on its first tries. The table of effects has
// no unique constraint.
func TestConsumersUnderKills(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	messages, every := 1_500, 200
	if os.Getenv("SEMEL_SOAK") == "1" {
		messages, every = 50_000, 700
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := newFixture(t, realtest.OwnRabbitMQ(t)).at(t)
	c := &loadTest{fixture: w, random: rand.New(rand.NewPCG(seed, 0))}
	c.ids, c.sent = copies(messages, c.random)

	var sending sync.WaitGroup
	defer sending.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	sending.Go(func() { c.send(ctx, t) })
	for i := range 3 {
		c.consumers = append(c.consumers, start(t, c.kind(i), w.seen))
	}
	for killed := 1; killed*every < messages; killed++ {
		realtest.Poll(t, "enough handled messages to kill the next consumer", func() bool {
			return w.count(t, `select count(*) from effects`) >= killed*every
		})
		c.replace(t)
		if killed >= 3 && c.redelivered == 0 {
			if c.redelivered = w.seen.count("redelivered"); c.redelivered > 0 {
				w.broker.Kill()
				w.broker.Start(t)
				c.restarts++
			}
		}
	}
	sending.Wait()
	c.drain(t)
	c.judge(t, messages)
}

// loadTest is three consumers and the producer.
type loadTest struct {
	*fixture

	random    *rand.Rand
	ids       []string // in the order in which they are sent
	sent      int      // copies, without those that were sent again needlessly
	consumers []process
	kills     int
	restarts  int // of the broker
	// redelivered counts the redeliveries of killed consumers before the broker was
	// killed: after that every delivery is marked as redelivered.
	redelivered int
}

// copies names the messages, each as often as it is sent, in an order in which
// copies are close to each other or far apart.
func copies(messages int, random *rand.Rand) ([]string, int) {
	var ids []string
	for i := range messages {
		for range 1 + random.IntN(5) {
			ids = append(ids, strconv.Itoa(i))
		}
	}
	for i := range ids { // a third of the copies goes far away, the others stay near
		if random.IntN(3) == 0 {
			j := random.IntN(len(ids))
			ids[i], ids[j] = ids[j], ids[i]
		}
	}
	return ids, len(ids)
}

// kind is the i-th consumer. One of them handles optimistically, and all share their
// records. All have a router: its handler's name is part of a message's identity, so a
// consumer without a router would handle each message once more.
func (c *loadTest) kind(i int) consumer {
	kind := c.consumer
	kind.Failing, kind.Way = 0.02, router
	if i == 1 {
		kind.Mode = inbox.Optimistic
	}
	return kind
}

// replace kills a consumer that has begun to work, and starts another.
func (c *loadTest) replace(t *testing.T) {
	t.Helper()
	i := c.random.IntN(len(c.consumers))
	realtest.Poll(t, "a consumer that works", func() bool {
		i = (i + 1) % len(c.consumers)
		return c.consumers[i].Count("Ack", "")+c.consumers[i].Count("Redeliver", "") > 0
	})
	c.consumers[i].Kill()
	c.kills++
	c.consumers[i] = start(t, c.kind(i), c.seen)
}

// send sends all copies. Messages that the broker has not confirmed are sent again.
func (c *loadTest) send(ctx context.Context, t *testing.T) {
	const batch = 500
	for from := 0; from < len(c.ids) && ctx.Err() == nil; {
		to := min(from+batch, len(c.ids))
		_ = realtest.Retry(ctx, func() bool { // the loop ends with ctx
			err := publish(ctx, c.AMQP, c.Queue, c.ids[from:to]...)
			if err != nil {
				t.Logf("sent again: %v", err)
			}
			return err == nil
		})
		from = to
	}
}

// drain waits until the queue is empty, and stops the consumers. Unhandled
// deliveries of a stopped consumer return to the queue.
func (c *loadTest) drain(t *testing.T) {
	t.Helper()
	empty := func() bool {
		n, err := queueLength(c.AMQP, c.Queue)
		return err == nil && n == 0
	}
	for range 10 {
		realtest.Poll(t, "an empty queue", empty)
		for _, p := range c.consumers {
			p.stop(t)
		}
		if empty() {
			return
		}
		c.consumers = []process{start(t, c.kind(0), c.seen)}
	}
	t.Error("messages are left in the queue")
}

func (c *loadTest) judge(t *testing.T, messages int) {
	t.Helper()
	effects := c.count(t, `select count(*) from effects`)
	distinct := c.count(t, `select count(distinct message) from effects`)
	records := c.count(t, `select count(*) from semel_records where state = 4`)
	duplicates, again := c.seen.count("duplicate"), c.seen.count("Redeliver")
	summary := fmt.Sprintf("%d messages sent %d times: %d effects of %d messages, %d duplicates, %d redelivered before the broker was killed, %d told to come again, %d consumers killed, the broker %d times",
		messages, c.sent, effects, distinct, duplicates, c.redelivered, again, c.kills, c.restarts)
	t.Log(summary)
	if effects != messages || distinct != messages {
		t.Errorf("lost or doubled: %s", summary)
	}
	check.Equal(t, records, messages, "messages are recorded as handled")
	check.Equal(t, c.dead(t), 0, "messages were rejected")
	if c.kills < 5 || duplicates == 0 || c.redelivered == 0 || again == 0 {
		t.Errorf("nothing was shown: %s", summary)
	}
}
