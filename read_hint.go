package semel

import (
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/store"
)

// lately is what the engine has met of late, from which it reckons whether to look
// before it claims. Most keys are new, and a claim finds out by itself what stands
// in its way; but where most are repeats, a look is all that they need, and one
// that writes nothing.
type readHint struct {
	// repeats is above zero when more of the last keys were final than new.
	repeats atomic.Int32
	// transactions are open in this process.
	transactions atomic.Int32
	// wrote is when the store last answered a write of this process, in
	// nanoseconds of the Unix epoch.
	wrote atomic.Int64
}

const (
	// repeatsBound is how many keys of one kind outweigh all that came before.
	repeatsBound = 16
	// quietFor is how long after a write nobody else is reckoned with.
	quietFor = 10 * time.Millisecond
)

// met counts a key whose record stood as final, or which was claimed.
func (l *readHint) observe(final bool) {
	was := l.repeats.Load()
	switch {
	case final && was < repeatsBound:
		l.repeats.Add(1)
	case !final && was > -repeatsBound:
		l.repeats.Add(-1)
	}
}

// written notes that the store has let this process write.
func (l *readHint) observeWrite() { l.wrote.Store(now().UnixNano()) }

// looks says whether to look first: when it is likely to be all, or when, in a
// store of one writer, a claim may have to wait for a transaction that a look
// need not wait for.
func (l *readHint) readFirst(caps *store.Capabilities) bool {
	if l.repeats.Load() > 0 {
		return true
	}
	return caps.Exclusive && (l.transactions.Load() > 0 || now().UnixNano()-l.wrote.Load() > int64(quietFor))
}
