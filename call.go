package semel

import (
	"crypto/sha256"
	"strconv"
	"time"

	"github.com/semelgo/semel/store"
)

// Call is one asking for an operation: who asks, with which key, for what. Make
// it with [Operation.Call].
type Call struct {
	op    *operation
	scope Scope
	key   string
	id    store.ID

	input       any
	storedInput []byte // of the input, in a new record; nil: nothing
	digest      fingerprint
	bound       bool        // digest has a binding, of Bind
	found       bool        // made of a record: its input is not known
	extras      *callExtras // nil: nothing of it
}

// unusual is what few calls have.
type callExtras struct {
	keyTime time.Time // the time in the key; zero: none
	stored  []byte    // the fingerprint of a call that was found, if it is not of the usual size
	err     error
}

// Call asks for the operation with a key in a scope. A key is 1 to 255 bytes,
// compared byte for byte. What is wrong with any of them is returned by the
// function that takes the Call, as a *FieldError. So is an input of which JSON loses a
// part, unless the operation compares its own Fingerprints and does not store the input:
// a string that is not valid UTF-8, a field that is set and not exported, or a value that
// is another one after it was encoded and decoded.
func (o *Operation[In]) Call(scope Scope, key string, in In) (c Call) {
	if err := o.fill(&c, scope, key, in); err != nil {
		c.extras = &callExtras{err: err}
	}
	return c
}

// CallAt is Call with an input that is not copied: nobody may write to it as long as
// anybody has the call, or its attempt. It is for adapters, which have a place for it.
func (o *Operation[In]) CallAt(scope Scope, key string, in *In) (c Call) {
	if err := o.fill(&c, scope, key, valueRef[In]{in}); err != nil {
		c.extras = &callExtras{err: err}
	}
	return c
}

// placed is an input, or a result, that stays where it is.
type valueRef[In any] struct{ ptr *In }

func (p valueRef[In]) pointer() any { return p.ptr }

// value is the input of a call, wherever it is.
func (o *Operation[In]) value(input any) (in In, ok bool) {
	if there, is := input.(valueRef[In]); is {
		return *there.ptr, true
	}
	in, ok = input.(In)
	return in, ok
}

// fill makes c, which is empty, the call, and returns what is wrong with it.
func (o *Operation[In]) fill(c *Call, scope Scope, key string, input any) (err error) {
	c.op, c.scope, c.key = &o.def, scope, key
	if err = o.def.err; err == nil {
		err = scope.valid()
	}
	switch {
	case err != nil:
		return err
	case key == "", len(key) > store.MaxKey:
		return invalid("Key", "must be 1 to "+strconv.Itoa(store.MaxKey)+" bytes, got "+strconv.Itoa(len(key)))
	}
	c.input = input
	c.id = store.NewID(o.def.name, scope.text, key)
	if err = c.readTime(); err != nil {
		return err
	}
	if c.digest, err = o.digest(o.version(), input); err != nil {
		return err
	}
	if retry := c.op.retry; retry != nil && !retry.Redelivered {
		c.storedInput, err = o.encodeInput(input)
		return err
	}
	return o.checkInput(input)
}

// readTime reads the time out of the key, which then leads the ID.
func (c *Call) readTime() error {
	made, ok := c.op.timeIn(c.key)
	switch {
	case !ok:
		return invalid("Key", "carries no time, which this operation asks for")
	case !made.IsZero():
		c.extras, c.id = &callExtras{keyTime: made}, store.NewTimedID(c.op.name, c.scope.text, c.key, made)
	}
	return nil
}

// made is the time in the key; zero: none.
func (c *Call) keyTime() time.Time {
	if c.extras == nil {
		return time.Time{}
	}
	return c.extras.keyTime
}

// Scope returns within whom the key is unique.
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

// ID returns the ID of the record, which may be logged. Where operations have a
// Generation it names the key, and their records have others.
func (c Call) ID() store.ID { return c.id }

// valid returns what is wrong with the call.
func (c *Call) valid() error {
	if c.op == nil {
		return invalid("Call", "is empty; make it with Operation.Call")
	}
	if c.extras == nil {
		return nil
	}
	return c.extras.err
}

// Bind returns the call with its fingerprint bound to more than the input: a call that is
// bound to something else is another request. It is for adapters whose requests have more
// to them than the input, such as an HTTP method and path. A call that is not bound to
// anything, such as that of a task, is the same request as a bound one with an equal input.
func (c Call) Bind(to []byte) Call {
	sum := sha256.Sum256(to)
	copy(c.digest[inputSize:], sum[:])
	c.bound = true
	return c
}

// fingerprint is that of the call's record, in the memory of the call.
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

// identity is what a new record of the call is created with.
func (c *Call) identity() (r store.Record) {
	c.identify(&r)
	return r
}

// identify makes r, which is empty, the call's identity.
func (c *Call) identify(r *store.Record) {
	r.ID, r.Operation, r.Scope, r.Key = c.id, c.op.name, c.scope.text, c.key
	r.Fingerprint = c.fingerprint()
	r.Input = c.storedInput
}

// compare tells whether the current record under the call's ID belongs to this request:
// it has the same operation, scope and key, not only the same 128-bit digest of them, and
// the same fingerprint.
func (c *Call) compare(r store.Record) requestMatch {
	if r.Operation != c.op.name || r.Scope != c.scope.text || r.Key != c.key {
		return otherRequest
	}
	return c.compareFingerprint(r.Fingerprint)
}
