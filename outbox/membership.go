package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/store"
)

// Operation is the name of the operation whose records hold leases: one for each lane, and
// one for each running relay. Relays report events of that operation, such as event.Parked.
const Operation = "semel_outbox"

func (r *Relay) call(key string) semel.Call {
	return r.operation.Call(semel.ScopeOf("relay"), key, struct{}{})
}

// membership tells which lanes are this relay's. It is a hint that shares the lanes out;
// the lease of a lane decides. Each running relay holds the lease of a record with a
// number, and the running relays take the lanes in turns.
type membership struct {
	relay   *Relay
	attempt *adapter.Attempt // of this relay's record; nil: none
	number  int              // of this relay's record
	rank    int              // of this relay among the running ones
	running int              // zero: not known yet
}

// owns reports whether a lane is this relay's.
func (m *membership) owns(lane int) bool { return m.running > 0 && lane%m.running == m.rank }

// refresh reads which relays run, and joins them.
func (m *membership) refresh(ctx context.Context) error {
	records, err := adapter.Records(ctx, m.relay.engine, m.calls())
	if err != nil {
		return err
	}
	live := make([]bool, len(records))
	for i, rec := range records {
		live[i] = rec.State == store.InProgress && rec.Due > 0
	}
	if m.attempt != nil && m.attempt.Context().Err() != nil { // its lease was lost
		m.leave()
	}
	if m.attempt == nil {
		if err := m.join(ctx, live); err != nil {
			return err
		}
	}
	m.rank, m.running = 0, 0
	for i, lives := range live {
		if !lives && i != m.number {
			continue
		}
		if i < m.number {
			m.rank++
		}
		m.running++
	}
	return nil
}

func (m *membership) calls() []semel.Call {
	calls := make([]semel.Call, store.OutboxLanes) // more relays would have no lanes
	for i := range calls {
		calls[i] = m.relay.call(fmt.Sprintf("relay-%02d", i))
	}
	return calls
}

// join claims a record that no running relay holds. Relays that start together try
// different ones first.
func (m *membership) join(ctx context.Context, live []bool) error {
	calls := m.calls()
	for _, i := range rand.Perm(len(live)) {
		if live[i] {
			continue
		}
		a, _, err := adapter.Begin(context.WithoutCancel(ctx), m.relay.engine, calls[i])
		switch {
		case errors.Is(err, semel.ErrInProgress):
			continue
		case err != nil:
			return err
		case a != nil:
			m.attempt, m.number = a, i
			return nil
		}
	}
	m.running = 0
	return errFull
}

var errFull = errors.New("outbox: 64 relays are running; this one waits")

// leave gives the record back, so that other relays take the lanes at their next poll.
func (m *membership) leave() {
	if m.attempt != nil {
		_, _ = m.attempt.End(nil, semel.Snooze(0)) // without it the lease expires
		m.attempt, m.running = nil, 0
	}
}
