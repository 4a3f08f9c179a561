package inbox

import (
	"time"

	"github.com/semelgo/semel"
)

// Inbox records which messages of one kind a consumer group has handled. It is
// safe for concurrent use.
type Inbox[In any] struct {
	op      *semel.Operation[In]
	group   semel.Scope
	mode    Mode
	inTx    bool
	time    func(string) (time.Time, bool)
	stamped bool
}

// New returns the inbox of a consumer group for messages of one kind. The kind
// is the name of an operation, 1 to 255 visible ASCII characters. A new kind
// starts without the records of the old one. If an option is invalid, the error
// is a *semel.FieldError. semel.New, for the operations it is given, and the
// first call report the errors that only the engine can detect.
func New[In any](kind string, o Options[In]) (*Inbox[In], error) {
	if err := o.valid(); err != nil {
		return nil, err
	}
	return &Inbox[In]{
		op: semel.Define(kind, o.operation()), group: semel.ScopeOf(o.Group), mode: o.Mode, inTx: o.Mode != Leased || o.atomic(),
		time: o.Time, stamped: o.Stamped,
	}, nil
}

// Operation returns the operation of the inbox. Add it to
// semel.Options.Operations, so that the engine can sweep and redrive its
// records.
func (in *Inbox[In]) Operation() *semel.Operation[In] { return in.op }

// Mode returns the mode of the inbox.
func (in *Inbox[In]) Mode() Mode { return in.mode }

// Transactional reports whether messages are handled in the record's
// transaction, by [HandleTx] and not by [Handle].
func (in *Inbox[In]) Transactional() bool { return in.inTx }

// Call returns the call that handles m. The call's ID is the ID of m's record:
// it may be logged, and operators resolve and redrive the record by it. The
// error is a *semel.FieldError that names the invalid field of m.
func (in *Inbox[In]) Call(m Message[In]) (semel.Call, error) {
	key, err := in.key(m)
	if err != nil {
		return semel.Call{}, err
	}
	return in.op.Call(in.group, key, m.Payload), nil
}
