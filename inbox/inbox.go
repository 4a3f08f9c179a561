package inbox

import (
	"time"

	"github.com/semelgo/semel"
)

// Inbox remembers which messages of one kind a consumer group has handled. It may
// be used by any number of goroutines.
type Inbox[In any] struct {
	op      *semel.Operation[In]
	group   semel.Scope
	mode    Mode
	inTx    bool
	time    func(string) (time.Time, bool)
	stamped bool
}

// New returns the inbox of a group for messages of one kind. The kind is the name
// of an operation, 1 to 255 visible ASCII characters; renaming it forgets what was
// handled. Wrong options are a *semel.FieldError; what the engine has to judge is
// reported by semel.New, for the operations it is given, and by the first call.
func New[In any](kind string, o Options[In]) (*Inbox[In], error) {
	if err := o.valid(); err != nil {
		return nil, err
	}
	return &Inbox[In]{
		op: semel.Define(kind, o.operation()), group: semel.ScopeOf(o.Group), mode: o.Mode, inTx: o.Mode != Leased || o.atomic(),
		time: o.Time, stamped: o.Stamped,
	}, nil
}

// Operation returns the operation that handling a message is. Give it to the
// engine, in semel.Options.Operations, so that its messages are swept and redriven.
func (in *Inbox[In]) Operation() *semel.Operation[In] { return in.op }

// Mode returns how messages are handled.
func (in *Inbox[In]) Mode() Mode { return in.mode }

// Transactional tells whether messages are handled in the record's transaction, by
// [HandleTx], and not by [Handle].
func (in *Inbox[In]) Transactional() bool { return in.inTx }

// Call returns the call that handling m is. Its ID names the record of m: it may be
// logged, and the record is resolved and redriven by it. The error names the field
// of m that is wrong, as a *semel.FieldError.
func (in *Inbox[In]) Call(m Message[In]) (semel.Call, error) {
	key, err := in.key(m)
	if err != nil {
		return semel.Call{}, err
	}
	return in.op.Call(in.group, key, m.Payload), nil
}
