package onetime

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/canonical"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
)

// Errors of this package. Test with errors.Is.
var (
	// ErrUnknown: the token was not issued for this purpose and this subject, or the
	// record of its use is older than the retention. Nothing was run. Issue a new token,
	// with a new form.
	ErrUnknown = callerr.ErrTokenUnknown
	// ErrExpired: the time of the token was over, and it had not been used. Nothing was
	// run. Issue a new token, with a new form. A token is known to have expired for one
	// retention; later it is [ErrUnknown].
	ErrExpired = callerr.ErrTokenExpired
	// ErrTooMany: the subject has Options.MaxOpen tokens of this purpose that it has
	// neither used nor let expire. Nothing was issued.
	ErrTooMany = callerr.ErrTooManyTokens
)

// Options configure a [Purpose]. The zero value has good defaults.
type Options struct {
	// Policy is what happens to a token whose process dies while the operation runs.
	// Unset: Hold for [Consume], one transaction for [ConsumeTx].
	Policy semel.Policy
	// Classify returns, for [Consume], NotCommitted for errors that prove that nothing
	// happened; see semel.OperationOptions. The token can then be used again.
	Classify func(error) store.Verdict
	// Lease is how long a process that runs the operation may be silent before its token
	// is treated as the Policy says. Zero: the engine's.
	Lease time.Duration
	// Retention is how long the result is returned to further submits, counted from the
	// outcome; and how long after its time a token is known to have expired. Zero: the
	// engine's.
	Retention time.Duration
	// Wait is how long a submit waits for another submit of the same token, which is
	// running, before it gets semel.ErrInProgress. Zero: 10 seconds.
	Wait time.Duration
	// MaxOpen is the largest number of tokens of one subject that are neither used nor
	// expired, at most 100. Issue then writes a second record, the list of these tokens.
	// If the retention is shorter than the time of a token, a used token may count until
	// its time is over. Zero: no limit.
	MaxOpen int
}

// Purpose is an operation that tokens are issued for, with a payload of type P that the function gets
// when the token is used. Define it once, as a package variable.
type Purpose[P any] struct {
	op      *semel.Operation[struct{}]
	maxOpen int
}

// Define defines a purpose. Its name is the name of an operation: 1 to 255 visible ASCII
// characters, used by nothing else. A new name starts without the tokens of the old one.
// Invalid options are reported by the first call, and by semel.New for the operations
// that it is given.
func Define[P any](name string, o Options) *Purpose[P] {
	wait := o.Wait
	if wait == 0 {
		wait = 10 * time.Second
	}
	return &Purpose[P]{maxOpen: o.MaxOpen, op: semel.Define(name, semel.OperationOptions[struct{}]{
		Policy: o.Policy, Classify: o.Classify, Lease: o.Lease, Retention: o.Retention, Wait: wait,
	})}
}

// Operation returns the operation of the purpose. Add it to semel.Options.Operations, so
// that the engine's sweeper settles tokens of crashed processes.
func (p *Purpose[P]) Operation() semel.Declared { return p.op }

// Issue returns a new token that subject can use once for this purpose, within ttl from
// now. The token has 43 characters of base64url. It is not stored: only its receiver has
// it. Every call writes a record, which is kept for ttl and the retention: limit how often
// one client can call it. A subject of semel.Shared means that every user with the
// token can use it.
//
// The errors are [ErrTooMany]; semel.ErrUnavailable; semel.ErrInProgress, if with a MaxOpen
// too many calls issue tokens for the subject at once; and a *semel.FieldError: for a payload that
// JSON cannot keep, for instance, or within a transaction of a store that lets one
// transaction write at a time.
func (p *Purpose[P]) Issue(ctx context.Context, e semel.Runner, subject semel.Scope, ttl time.Duration, payload P) (string, error) {
	text, err := encode(&payload)
	if err != nil {
		return "", err
	}
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	token := base64.RawURLEncoding.EncodeToString(random[:])
	o := adapter.IssueOptions{TTL: ttl, Payload: text, MaxOpen: p.maxOpen}
	if err := adapter.Issue(ctx, e, p.op.Call(subject, digest(token), struct{}{}), o); err != nil {
		return "", err
	}
	return token, nil
}

// encode returns the JSON of a payload, or an error if JSON loses a part of it.
func encode[P any](payload *P) ([]byte, error) {
	text, err := json.Marshal(payload)
	if err == nil {
		_, _, err = canonical.Check(reflect.ValueOf(payload).Elem(), text, nil)
	}
	if loss, ok := errtype.Find[*canonical.LossError](err); ok {
		return nil, &semel.FieldError{Field: "Payload" + loss.Path, Reason: loss.Why}
	}
	if err != nil {
		return nil, &semel.FieldError{Field: "Payload", Reason: "cannot be encoded: " + err.Error()}
	}
	return text, nil
}

// digest returns the key of a token's record.
func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Call returns the call that uses token, for edges: it runs the operation by semel.Do,
// semel.DoTx or adapter.Begin, at most once. Use it for one call only. Its key, a digest,
// and its ID reveal nothing about the token. Programs use [Consume] and [ConsumeTx].
func (p *Purpose[P]) Call(subject semel.Scope, token string) semel.Call {
	return p.op.Call(subject, digest(token), struct{}{}).Issued()
}

// Payload returns the payload of the token that the operation of ctx uses. It is for
// handlers behind an edge; the functions of [Consume] and [ConsumeTx] get the payload as an
// argument. In any other ctx it is a *semel.FieldError.
func (p *Purpose[P]) Payload(ctx context.Context) (payload P, err error) {
	text, ok := adapter.IssuedPayload(ctx)
	if !ok {
		return payload, &semel.FieldError{Field: "ctx", Reason: "does not belong to the use of a token"}
	}
	if err := json.Unmarshal(text, &payload); err != nil {
		return payload, fmt.Errorf("onetime: decode the payload: %w", err)
	}
	return payload, nil
}
