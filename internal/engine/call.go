package engine

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"time"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// Call is a call of an operation: a scope, a key and an input.
type Call struct {
	op    *operation
	scope Scope
	key   string
	id    store.ID

	input       any
	storedInput []byte // the input of a new record; nil: not stored
	digest      fingerprint
	bound       bool        // digest includes a binding of Bind
	found       bool        // made from a record, so its input is not known
	extras      *callExtras // nil: none
	issued      *issued     // not nil: Issue must have made the record
}

// callExtras holds what few calls have.
type callExtras struct {
	keyTime time.Time // time in the key, with which the ID begins; zero: none
	stored  []byte    // fingerprint of a call made from a record, if it has an unusual size
	err     error
}

// Call makes a call with a key in a scope. A key has 1 to 255 bytes, which are
// compared one by one. The function that takes the Call returns an invalid scope,
// key or input as a *FieldError. An input is invalid if JSON loses a part of it: a
// string that is not valid UTF-8, a field that is set and not exported, or a value
// that changes when it is encoded and decoded. An operation with its own
// Fingerprints that does not store its input accepts such inputs.
func (o *Operation[In]) Call(scope Scope, key string, in In) (c Call) {
	if err := o.fill(&c, scope, key, in); err != nil {
		c.extras = &callExtras{err: err}
	}
	return c
}

// CallAt is Call without a copy of the input. The input must not be changed while
// the call or its attempt is in use. It is for adapters that store the input
// anyway.
func (o *Operation[In]) CallAt(scope Scope, key string, in *In) (c Call) {
	if err := o.fill(&c, scope, key, in); err != nil {
		c.extras = &callExtras{err: err}
	}
	return c
}

// value returns the input of a call, which may be a pointer to it.
func (o *Operation[In]) value(input any) (in In, ok bool) {
	if there, is := input.(*In); is {
		return *there, true
	}
	in, ok = input.(In)
	return in, ok
}

// fill sets c, which is empty, to the call, and returns what is wrong with it.
func (o *Operation[In]) fill(c *Call, scope Scope, key string, input any) (err error) {
	c.op, c.scope, c.key = &o.def, scope, key
	if err = o.def.err; err == nil {
		err = scope.valid()
	}
	switch {
	case err != nil:
		return err
	case key == "", len(key) > store.MaxKey:
		return callerr.Invalid("Key", "must be 1 to "+strconv.Itoa(store.MaxKey)+" bytes, got "+strconv.Itoa(len(key)))
	}
	c.input = input
	c.id = store.NewID(o.def.name, scope.text, key)
	if o.def.keyTime != nil {
		made, ok := o.def.keyTime(key)
		switch {
		case !ok:
			return callerr.Invalid("Key", "carries no time, which this operation requires")
		case !made.IsZero():
			c.extras, c.id = &callExtras{keyTime: made}, store.NewTimedID(o.def.name, scope.text, key, made)
		}
	}
	if c.digest, err = o.digest(len(o.fingerprints), input); err != nil {
		return err
	}
	if retry := c.op.retry; retry != nil && !retry.Redelivered {
		c.storedInput, err = o.encodeInput(input)
		return err
	}
	return o.checkInput(input)
}

// Scope returns the scope within which the key is unique.
func (c Call) Scope() Scope { return c.scope }

// Key returns the caller's key.
func (c Call) Key() string { return c.key }

// Operation returns the name of the operation.
func (c Call) Operation() string {
	if c.op == nil {
		return ""
	}
	return c.op.name
}

// ID returns the ID of the record, which may be logged. For an operation with a
// Generation it identifies the key; the records have other IDs.
func (c Call) ID() store.ID { return c.id }

// valid returns what is wrong with the call.
func (c *Call) valid() error {
	if c.op == nil {
		return callerr.Invalid("Call", "is empty; make it with Operation.Call")
	}
	if c.extras == nil {
		return nil
	}
	return c.extras.err
}

// Bind returns the call with data added to its fingerprint: a call that is bound to
// other data is another request. It is for adapters whose requests have more parts
// than the input, such as an HTTP method and path. A call that is not bound to
// anything, such as a task's, is the same request as a bound call with an equal
// input.
func (c Call) Bind(to []byte) Call {
	sum := sha256.Sum256(to)
	copy(c.digest[inputSize:], sum[:])
	c.bound = true
	return c
}

// fingerprint returns the fingerprint of the call's record. The bytes belong to the
// call.
func (c *Call) fingerprint() []byte {
	switch {
	case c.found && c.extras != nil:
		return c.extras.stored
	case c.bound:
		return c.digest[:]
	default:
		return c.digest[:inputSize]
	}
}

// identity returns the identity of a new record of the call.
func (c *Call) identity() (r store.Record) {
	r.ID, r.Operation, r.Scope, r.Key = c.id, c.op.name, c.scope.text, c.key
	r.Fingerprint = c.fingerprint()
	r.Input = c.storedInput
	return r
}

// requestTo sets the fields of e that say which request the record must belong to.
func (c *Call) requestTo(e *protocol.Event) {
	e.Request, e.Identity = c, c.identity()
	if c.issued != nil {
		e.Issued, e.MaxAge = true, c.issued.maxAge
	}
}

// Compare reports whether the record under the call's ID belongs to this request:
// it has the same operation, scope and key, and not only the same 128-bit digest of
// them, and the same fingerprint.
func (c *Call) Compare(r store.Record) protocol.RequestMatch {
	if r.Operation != c.op.name || r.Scope != c.scope.text || r.Key != c.key {
		return protocol.OtherRequest
	}
	return c.compareFingerprint(r.Fingerprint)
}

// Scope is the scope within which a key is unique: the principal, the tenant, the
// consumer group.
type Scope struct {
	text string
}

// sharedScope differs from every ScopeOf, whose text begins with a digit.
const sharedScope = "*"

// ScopeOf returns the scope of a caller: a user ID, or a tenant and a user.
func ScopeOf(parts ...string) Scope {
	var b strings.Builder
	for _, p := range parts {
		if p == "" {
			return Scope{}
		}
		b.WriteString(strconv.Itoa(len(p)))
		b.WriteByte(':')
		b.WriteString(p)
	}
	return Scope{text: b.String()}
}

// Shared returns the scope of operations whose keys mean the same for every caller.
func Shared() Scope { return Scope{text: sharedScope} }

// Parts returns the arguments of [ScopeOf], or nil for Shared and the zero Scope.
func (s Scope) Parts() []string {
	var parts []string
	rest := s.text
	for rest != "" {
		digits, tail, ok := strings.Cut(rest, ":")
		n, err := strconv.Atoi(digits)
		if !ok || err != nil || n > len(tail) {
			return nil
		}
		parts, rest = append(parts, tail[:n]), tail[n:]
	}
	return parts
}

// Bytes returns the scope as stores keep it.
func (s Scope) Bytes() string { return s.text }

func (s Scope) valid() error {
	if s.text == "" {
		return callerr.Invalid("Scope", "is required, and no part of it may be empty; use Shared() for keys that all callers share")
	}
	if len(s.text) > store.MaxScope {
		return callerr.Invalid("Scope", "is longer than "+strconv.Itoa(store.MaxScope)+" bytes")
	}
	return nil
}

// issued is what a call knows about the record that Issue made for it.
type issued struct {
	maxAge  time.Duration
	payload []byte
}

// Issued returns the call of a record that [Issue] must have made. The call never
// creates the record: without one it is callerr.ErrTokenUnknown, and callerr.ErrTokenExpired if
// the time of the record is over and no attempt can have used it. Use the
// result for one call only. It is for one-time tokens.
func (c Call) Issued() Call {
	c.issued = new(issued)
	return c
}

// readIssue notes what Issue stored in the current record. A record without it, in
// which a token cannot be used any more, has the age zero as its limit.
func (c *Call) readIssue(current *store.Record) {
	if c.issued == nil {
		return
	}
	*c.issued = issued{}
	if p, ok := codec.ProgressOf(*current); ok && p.Issued != nil {
		*c.issued = issued{p.Issued.MaxAge, p.Issued.Payload}
	}
}
