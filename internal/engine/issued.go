package engine

import (
	"time"

	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/store"
)

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
	extras := callExtras{}
	if c.extras != nil {
		extras = *c.extras
	}
	extras.issued = new(issued)
	c.extras = &extras
	return c
}

func (c *Call) isIssued() bool { return c.extras != nil && c.extras.issued != nil }

// own returns a copy of the call that shares nothing that readIssue changes.
func (c *Call) own() Call {
	if c.isIssued() {
		return c.Issued()
	}
	return *c
}

// readIssue notes what Issue stored in the current record. A record without it, in
// which a token cannot be used any more, has the age zero as its limit.
func (c *Call) readIssue(current *store.Record) {
	if !c.isIssued() {
		return
	}
	*c.extras.issued = issued{}
	if p, ok := codec.ProgressOf(*current); ok && p.Issued != nil {
		*c.extras.issued = issued{p.Issued.MaxAge, p.Issued.Payload}
	}
}

// maxAge returns whether the record must exist, and the age from which it starts no
// first attempt.
func (c *Call) maxAge() (mustExist bool, age time.Duration) {
	if !c.isIssued() {
		return false, 0
	}
	return true, c.extras.issued.maxAge
}
