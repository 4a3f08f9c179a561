package server

import (
	"context"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/onetime"
)

// retention is the default of -retention: how long a finished record is kept for
// retries. A record in doubt is kept until it is resolved.
const retention = 30 * 24 * time.Hour

// userRequest is the body of a request to add a user. The fingerprint, a fast digest,
// leaves the password out: the records would otherwise help to guess it.
type userRequest struct {
	Name     string `json:"name"`
	NameKey  string `json:"-"`
	Password string `json:"-"`
}

// groupRequest is the body of a request to create a group. Its JSON is the
// fingerprint: the same key with another name or other members is a mismatch.
type groupRequest struct {
	Name string `json:"name"`
	userSelection
}

// userSelection names users by ID, by name, or both.
type userSelection struct {
	MemberIDs   []int64  `json:"member_ids"`
	MemberNames []string `json:"member_names"`
}

// messageRequest is the body of a request to send a message.
type messageRequest struct {
	GroupID string `json:"group_id"`
	Text    string `json:"text"`
}

// operations are the operations that have a key from the client.
type operations struct {
	signUp      *semel.Operation[userRequest]
	createGroup *semel.Operation[groupRequest]
	sendMessage *semel.Operation[messageRequest]
	boostGroup  *semel.Operation[boostRequest]
	welcome     *semel.Operation[welcome]
	ticket      *onetime.Purpose[ticket]
}

// newOperations defines the operations for the mode. OnError is Release in every
// mode: an error such as a full disk is not the operation's answer, so the same
// key may be tried again. The operations' own refusals, an unknown member and
// a taken name, are marked semel.Final, so they are stored.
func newOperations(c config, look probes) operations {
	return operations{
		signUp: semel.Define("sign_up", semel.OperationOptions[userRequest]{
			Policy: policy(c, look.user), Lease: lease(c), Retention: c.retention, Wait: c.wait,
			KeyTime: keyTime,
		}),
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
		ticket:     defineTicket(),
	}
}

// keyTime returns the time in a key. A key older than the retention is rejected,
// because its record may have been purged. Keys without a time are accepted.
func keyTime(key string) (time.Time, bool) {
	at, _ := semel.UUIDv7Time(key)
	return at, true
}

// policy returns what happens to a key after its leader crashed. If the records
// are in the chat's database, record and effect commit together, so another
// attempt is safe. If they are in another database, only evidence settles the
// record.
func policy(c config, probe func(context.Context, semel.Scope, string) (any, bool, error)) semel.Policy {
	if c.mode == modeApart {
		return semel.Heal(probe)
	}
	return semel.Atomic()
}

// lease returns the lease of an operation. With a lease an Atomic operation
// commits its claim first.
func lease(c config) time.Duration {
	if c.mode == modeInline {
		return 0
	}
	return c.lease
}

// attempt returns the number of ctx's attempt. An inline attempt has no record
// before its commit; it is logged as attempt 1.
func attempt(ctx context.Context) uint32 {
	if a, ok := semel.AttemptOf(ctx); ok {
		return a.Number()
	}
	return 1
}

// boostRequest is the body of a request to boost a group.
type boostRequest struct {
	GroupID string `json:"group_id"`
}

// defineBoost defines the operation that charges a member and records the charge.
// The two writes are in two systems that share no transaction, so a crash can
// fall between them. The operation then runs again: the payment service
// deduplicates by the key, and the boost's row by the name of the charge. The
// payment service must remember its keys for longer than this server does.
func defineBoost(c config) *semel.Operation[boostRequest] {
	return semel.Define("boost_group", semel.OperationOptions[boostRequest]{
		Policy: semel.Keyed(), Lease: c.lease, Retention: c.retention, Wait: c.wait, KeyTime: keyTime,
	})
}

// welcome is the input of the task that welcomes a member.
type welcome struct {
	GroupID string `json:"group_id"`
	UserID  int64  `json:"user_id"`
}

const welcomeOperation = "welcome_member"

// defineWelcome defines the task. Its effect is in the record's own database, so
// a crashed attempt has left nothing, and any number of further attempts is safe.
func defineWelcome(c config) *semel.Operation[welcome] {
	return semel.Define(welcomeOperation, semel.OperationOptions[welcome]{
		Policy: semel.Atomic(), Lease: c.lease, Retention: c.retention,
		Retry: &semel.Retry{MaxErrors: 20, MaxCrashes: 20, Delay: doubled},
	})
}

// doubled is an exponential backoff: 1, 2, 4 … seconds, at most about an hour.
func doubled(errors int) time.Duration {
	return time.Second << min(max(errors-1, 0), 12)
}

// ticket is what a ticket is issued for. Its record is in the chat's own database.
type ticket struct {
	SessionID string `json:"session_id"`
}

// maxTickets is how many unused tickets a user may have.
const maxTickets = 20

func defineTicket() *onetime.Purpose[ticket] {
	return onetime.Define[ticket]("open_stream", onetime.Options{Retention: time.Minute, MaxOpen: maxTickets})
}
