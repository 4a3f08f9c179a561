package semel

import (
	"encoding/json"
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

	input  any
	kept   []byte // of the input, in a new record; nil: nothing
	digest fingerprint
	found  bool     // made of a record: its input is not known
	seldom *unusual // nil: nothing of it
}

// unusual is what few calls have.
type unusual struct {
	made   time.Time // the time in the key; zero: none
	stored []byte    // the fingerprint of a call that was found, if it is not of the usual size
	err    error
}

// Call asks for the operation with a key in a scope. A key is 1 to 255 bytes,
// compared byte for byte. What is wrong with any of them is returned by the
// function that takes the Call, as a *FieldError.
func (o *Operation[In]) Call(scope Scope, key string, in In) Call {
	c := Call{op: &o.def, scope: scope, key: key}
	err := o.def.err
	if err == nil {
		err = scope.valid()
	}
	if err == nil && (key == "" || len(key) > store.MaxKey) {
		err = invalid("Key", "must be 1 to "+strconv.Itoa(store.MaxKey)+" bytes, got "+strconv.Itoa(len(key)))
	}
	if err != nil {
		return c.wrong(err)
	}
	c.input = in
	c.id = store.NewID(o.def.name, scope.text, key)
	if err = c.readTime(); err != nil {
		return c.wrong(err)
	}
	if c.digest, err = o.digest(o.version(), c.input); err != nil {
		return c.wrong(invalid("Input", "has no fingerprint: "+err.Error()))
	}
	if retry := c.op.retry; retry != nil && !retry.Redelivered {
		if c.kept, err = c.storedInput(); err != nil {
			return c.wrong(err)
		}
	}
	return c
}

// wrong returns the call as one that is refused.
func (c Call) wrong(err error) Call {
	c.seldom = &unusual{err: err}
	return c
}

// storedInput is the input as it is stored for workers.
func (c *Call) storedInput() ([]byte, error) {
	text, err := json.Marshal(c.input)
	if err != nil {
		return nil, invalid("Input", "cannot be stored: "+err.Error())
	}
	return text, nil
}

// readTime reads the time out of the key, which then leads the ID.
func (c *Call) readTime() error {
	made, ok := c.op.timeIn(c.key)
	switch {
	case !ok:
		return invalid("Key", "carries no time, which this operation asks for")
	case !made.IsZero():
		c.seldom, c.id = &unusual{made: made}, store.NewTimedID(c.op.name, c.scope.text, c.key, made)
	}
	return nil
}

// made is the time in the key; zero: none.
func (c *Call) made() time.Time {
	if c.seldom == nil {
		return time.Time{}
	}
	return c.seldom.made
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
	if c.seldom == nil {
		return nil
	}
	return c.seldom.err
}

// fingerprint is that of the call's record, in the memory of the call.
func (c *Call) fingerprint() []byte {
	if c.found && c.seldom != nil {
		return c.seldom.stored
	}
	return c.digest[:]
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
	r.Input = c.kept
}

// is tells whether a record that stands under the call's ID is of this very
// request: of its full operation, scope and key, not only of their 128-bit
// digest, and of its fingerprint.
func (c *Call) is(r store.Record) bool {
	return r.Operation == c.op.name && r.Scope == c.scope.text && r.Key == c.key && c.same(r.Fingerprint)
}
