package server

import (
	"context"
	"time"

	"github.com/semelgo/semel"
)

// retention is how long a finished record is kept for those who ask again, unless
// -retention says otherwise: people retry for weeks, so a month. A key of which
// nobody knows the end is kept until somebody has looked.
const retention = 30 * 24 * time.Hour

// groupRequest is what a creation is asked with. Its JSON is the fingerprint:
// the same key with another name or other members is another request.
type groupRequest struct {
	Name    string  `json:"name"`
	Members []int64 `json:"members"`
}

// messageRequest is what sending is asked with.
type messageRequest struct {
	GroupID string `json:"group_id"`
	Text    string `json:"text"`
}

// operations are what this server does once.
type operations struct {
	createGroup *semel.Operation[groupRequest]
	sendMessage *semel.Operation[messageRequest]
	boostGroup  *semel.Operation[boostRequest]
	welcome     *semel.Operation[welcome]
}

// newOperations declares them as the mode asks. In every mode OnError stays
// Release: a disk that is full is not the operation's answer, and the key may
// try again. The answer that is the operation's own, an unknown member, is
// marked semel.Final and kept for good.
func newOperations(c config, look probes) operations {
	return operations{
		createGroup: semel.Define("create_group", semel.OperationOptions[groupRequest]{
			Policy: policy(c, look.group), Lease: lease(c), Retention: c.retention, Wait: c.wait,
			KeyTime: keyTime,
		}),
		sendMessage: semel.Define("send_message", semel.OperationOptions[messageRequest]{
			Policy: policy(c, look.message), Lease: lease(c), Retention: c.retention, Wait: c.wait,
			KeyTime: keyTime,
		}),
		boostGroup: defineBoost(c),
		welcome:    defineWelcome(c),
	}
}

// keyTime lets a key that tells its time be refused when that is past the
// retention: what the key once stood for may be forgotten. A key that tells none
// is an ordinary one.
func keyTime(key string) (time.Time, bool) {
	at, _ := semel.UUIDv7Time(key)
	return at, true
}

// policy says what becomes of a key whose leader died. With the records in the
// domain's database the two commit together, so another attempt is safe. With
// the records elsewhere only evidence can tell.
func policy(c config, probe semel.Probe) semel.Policy {
	if c.mode == modeApart {
		return semel.Heal(probe)
	}
	return semel.Atomic()
}

// lease is what makes an Atomic operation commit its claim first.
func lease(c config) time.Duration {
	if c.mode == modeInline {
		return 0
	}
	return c.lease
}

// attempt returns the number of the attempt that ctx belongs to. An inline
// attempt has no record to be numbered by before it commits, and is logged as
// the first.
func attempt(ctx context.Context) uint32 {
	if a, ok := semel.AttemptOf(ctx); ok {
		return a.Number()
	}
	return 1
}
