package storetest

import (
	"errors"

	"github.com/semelgo/semel/store"
)

// ErrInjected is the error of a call that Faulty fails.
var ErrInjected = errors.New("storetest: injected fault")

// Call describes a call before it is made.
type Call struct {
	N       int            // 1 for the first call of this store since Decide
	MethodN int            // 1 for the first of them with this Method
	Method  string         // as in store.TxStore, store.Auditor and store.Dequeuer; "Reread" for a Dequeue that rereads
	ID      store.ID       // of Atomic
	Changes []store.Change // of Swap, SwapTx, SwapNoted and AtomicBatch
	Dequeue store.Dequeue  // of Dequeue
}

// To returns the state that the first change writes, or Absent if the call has no
// changes.
func (c Call) To() store.State {
	if len(c.Changes) == 0 {
		return store.Absent
	}
	return c.Changes[0].To.State
}

// Writes reports whether the call writes records.
func (c Call) Writes() bool {
	switch c.Method {
	case "Get", "Scan", "Notes", "Capabilities", "Reread", "Lanes", "Head", "Counts", "ParkedAggregates":
		return false
	}
	return true
}

// Fault is what happens to a call. The zero Fault makes the call normally. Fields
// may be combined.
type Fault struct {
	Name string // what String returns

	// Gate delays the call until the channel is closed. A call whose context ends
	// before is not made.
	Gate <-chan struct{}
	// Before fails the call before it reaches the store. A transaction does not
	// begin: NotCommitted.
	Before error
	// Hang lets the call wait until its context ends. It is not made.
	Hang bool

	// Busy answers as if another open transaction held all records.
	Busy bool
	// Result is the answer for each change or ID in place of the store's answer.
	// It is what the function of Atomic is given.
	Result *store.SwapResult
	// Twice makes the call twice, as a driver does that repeats a statement.
	Twice bool

	// Commit is called before a transaction commits.
	Commit func()
	// Rollback rolls a transaction back after its function: NotCommitted, or Unknown
	// together with After. Together with After, all other calls are not made.
	Rollback error
	// Open answers Unknown while the transaction is still open. FaultyTx.Release
	// commits it.
	Open bool

	// Reply is called after the call, before its reply is returned or lost.
	Reply func()
	// After applies the call and loses its reply. For a transaction that commits:
	// Unknown.
	After error
	// Mute applies the call and loses its reply: the caller waits until its context
	// ends. For a transaction that commits: Unknown.
	Mute bool
	// Extra is an error that a transaction returns although it reports its verdict.
	Extra error
}

// Refuse fails the call before it reaches the store.
func Refuse() Fault { return Fault{Name: "Refuse", Before: ErrInjected} }

// Abort is Refuse for all calls except Atomic. Atomic calls run, rolls back, and
// returns Unknown.
func Abort() Fault { return Fault{Name: "Abort", Rollback: ErrInjected, After: ErrInjected} }

// Lose applies the call and loses its reply.
func Lose() Fault { return Fault{Name: "Lose", After: ErrInjected} }

// String returns the fault's name.
func (f Fault) String() string { return f.Name }

// answers returns the results that the fault has in place of the store's. It
// returns false if the store answers.
func (f Fault) answers(n int) ([]store.SwapResult, bool) {
	if f.Result == nil && !f.Busy {
		return nil, false
	}
	all := make([]store.SwapResult, n)
	for i := range all {
		all[i] = f.result(all[i])
	}
	return all, true
}

// result returns the answer of the fault, or that of the store.
func (f Fault) result(of store.SwapResult) store.SwapResult {
	switch {
	case f.Result != nil:
		return *f.Result
	case f.Busy:
		return store.SwapResult{Busy: true}
	default:
		return of
	}
}

// before returns the error of a call that does not reach the store.
func (f Fault) before() error {
	if f.Before == nil && f.After != nil {
		return f.Rollback
	}
	return f.Before
}
