//go:build unix

package messages_test

import (
	"testing"

	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// TestConsumerIsKilled at each point of its handling of a message, which the broker
// then redelivers to another consumer. The naive version, which marks a message as
// processed before it handles it, loses the message between the two. An inbox has
// its effect once, wherever its consumer died; under Hold the outcome is unknown,
// so it raises an alarm and keeps the message for an operator.
func TestConsumerIsKilled(t *testing.T) {
	t.Parallel()
	const (
		effects = `select count(*) from effects where message = $1`
		charges = `select count(*) from charges where message = $1`
	)
	fixture := newFixture(t, realtest.RabbitMQ(t))
	for name, test := range map[string]struct {
		consumer consumer
		count    string
		want     map[string]int // by point; default 1
		dead     map[string]int // default none
	}{
		"Sketch":               {consumer{Way: naive}, effects, map[string]int{between: 0, acted: 0}, nil},
		"Pessimistic":          {consumer{Way: plain}, effects, nil, nil},
		"Optimistic":           {consumer{Way: plain, Mode: inbox.Optimistic}, effects, nil, nil},
		"Keyed":                {consumer{Way: plain, Mode: inbox.Leased, Keyed: true}, charges, nil, nil},
		"Hold":                 {consumer{Way: plain, Mode: inbox.Leased}, charges, map[string]int{between: 0}, map[string]int{between: 1, acted: 1}},
		"WatermillPessimistic": {consumer{Way: router}, effects, nil, nil},
		"WatermillKeyed":       {consumer{Way: router, Mode: inbox.Leased, Keyed: true}, charges, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			points := []string{before, between, acted, after}
			w := fixture.at(t)
			for _, point := range points {
				w.publish(t, name+" "+point)
			}
			c := w.consumer
			c.Way, c.Mode, c.Keyed, c.Kill = test.consumer.Way, test.consumer.Mode, test.consumer.Keyed, true
			for _, point := range points {
				start(t, c, w.seen).killedAt(t, point)
				w.endLease(t, name+" "+point)
			}
			last := start(t, c, w.seen)
			realtest.Poll(t, "the end of each message", func() bool {
				return w.seen.count("Ack")+w.seen.count("Reject") == len(points)
			})
			last.stop(t)
			dead := 0
			for _, point := range points {
				want, hasSaid := test.want[point]
				if !hasSaid {
					want = 1
				}
				check.Equal(t, w.count(t, test.count, name+" "+point), want, "killed %s: effects", point)
				dead += test.dead[point]
			}
			realtest.Poll(t, "the rejected messages in the broker", func() bool { return w.dead(t) == dead })
			if left, err := queueLength(w.AMQP, w.Queue); left != 0 || err != nil {
				t.Errorf("%d messages are left, %v", left, err)
			}
			if n := w.seen.count("redelivered"); n < len(points) {
				t.Errorf("the broker delivered %d again", n)
			}
		})
	}
}
