package semeltest

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/storetest"
)

// Point is a moment in the life of a leader.
type Point int

const (
	// BeforeFunction is after the claim and before the function of the operation. The
	// record is InProgress, if the operation has a lease; an inline one leaves nothing.
	BeforeFunction Point = iota + 1
	// AfterFunction is after the function and before its outcome is written. What the
	// function did outside of its transaction has happened; its transaction is rolled back.
	// The record is the same whether the engine was about to write the outcome or not.
	AfterFunction
	// AfterOutcome is after the outcome has been stored, and the transaction committed, and
	// before the leader receives the reply.
	AfterOutcome
)

// String returns the point's name.
func (p Point) String() string {
	switch p {
	case BeforeFunction:
		return "BeforeFunction"
	case AfterFunction:
		return "AfterFunction"
	case AfterOutcome:
		return "AfterOutcome"
	default:
		return "Point(?)"
	}
}

var (
	errCrashed = errors.New("semeltest: the process has crashed")
	errLost    = errors.New("semeltest: the reply is lost")
)

// Crash returns s as a process sees it that crashes at the given point: from there on
// nothing of the process reaches s. Make an engine over it, and let it run one operation.
// What that call returns does not matter, because a dead process answers no caller. Then
// make the same call with an engine over s, as another process does after the crash, and
// check its answer. Let the lease expire before with [Advance], if the operation has one.
//
//	dying := newService(semeltest.Crash(t, s, semeltest.AfterFunction))
//	_, _ = dying.Pay(ctx, order) // this process is dead now
//	semeltest.Advance(t, s, time.Minute)
//	receipt, err := newService(s).Pay(ctx, order)
//
// The first operation that reaches the point ends the process, so each crash needs a Crash
// of its own. If a function calls other operations, the point of an inner one may come
// first: name the operations whose leaders are meant. They must be called directly and have
// a lease, as those of [semel.Do]. An engine over the returned store need not be closed. It
// has no [semel.DoBatch]. The test fails if the process never reached the point.
func Crash[Tx any](t testing.TB, s store.TxStore[Tx], at Point, operations ...string) store.TxStore[Tx] {
	t.Helper()
	return faulty(s, crashes(t, at, operations))
}

// CrashRunner is [Crash] for a store without transactions, as for [semel.NewRunner].
func CrashRunner(t testing.TB, s store.Store, at Point, operations ...string) store.Store {
	t.Helper()
	return faultyRunner(s, crashes(t, at, operations))
}

// LoseReply returns s as a process sees it whose connection breaks once: after the first
// outcome has been stored, or its transaction been committed, and before the reply. Make
// an engine over it and check that its caller still receives the outcome. The engine has
// no [semel.DoBatch]. The test fails if no reply was lost.
func LoseReply[Tx any](t testing.TB, s store.TxStore[Tx]) store.TxStore[Tx] {
	t.Helper()
	return faulty(s, losesReply(t))
}

// LoseReplyRunner is [LoseReply] for a store without transactions, as for
// [semel.NewRunner].
func LoseReplyRunner(t testing.TB, s store.Store) store.Store {
	t.Helper()
	return faultyRunner(s, losesReply(t))
}

// crashes returns the faults of a process that dies at a point of the operations, or of any
// if there are none.
func crashes(t testing.TB, at Point, operations []string) func(storetest.Call) storetest.Fault {
	t.Helper()
	var dead atomic.Bool
	t.Cleanup(func() {
		if !dead.Load() {
			t.Errorf("semeltest: no leader reached the point %s of Crash%s", at, of(operations))
		}
	})
	die := func() { dead.Store(true) }
	meant := callsOf(operations)
	return func(c storetest.Call) storetest.Fault {
		switch {
		case dead.Load():
			return gone(c)
		case !meant(c):
			return storetest.Fault{}
		case at == BeforeFunction && c.Method == "Atomic":
			// The claim of a leased operation comes before its transaction, and has met the
			// crash. So this one is inline, and a crash leaves nothing of it.
			die()
			return gone(c)
		case at == BeforeFunction && claims(c), at == AfterOutcome && ends(c):
			return storetest.Fault{After: errCrashed, Reply: die}
		case at == AfterFunction && c.Method == "Atomic":
			return storetest.Fault{Rollback: errCrashed, After: errCrashed, Reply: die}
		case at == AfterFunction && ends(c):
			die()
			return gone(c)
		}
		return storetest.Fault{}
	}
}

// callsOf returns whether a call claims or ends a record of one of the operations, or of any
// if there are none. It knows a transaction by the claim of its record.
func callsOf(operations []string) func(storetest.Call) bool {
	var claimed sync.Map // store.ID
	return func(c storetest.Call) bool {
		if len(operations) == 0 {
			return true
		}
		_, meant := claimed.Load(c.ID)
		for _, change := range c.Changes {
			if slices.Contains(operations, change.To.Operation) {
				claimed.Store(change.To.ID, nil)
				meant = true
			}
		}
		return meant
	}
}

// of returns a list of operations for a message.
func of(operations []string) string {
	if len(operations) == 0 {
		return ""
	}
	return " of a direct call, with a lease, of " + strings.Join(operations, ", ")
}

// losesReply returns the faults of a connection that loses one reply.
func losesReply(t testing.TB) func(storetest.Call) storetest.Fault {
	t.Helper()
	var lost atomic.Bool
	t.Cleanup(func() {
		if !lost.Load() {
			t.Error("semeltest: no outcome was stored, so LoseReply lost no reply")
		}
	})
	return func(c storetest.Call) storetest.Fault {
		if ends(c) && lost.CompareAndSwap(false, true) {
			return storetest.Fault{After: errLost}
		}
		return storetest.Fault{}
	}
}

// faulty returns s with faults, and without optional interfaces that s does not have.
func faulty[Tx any](s store.TxStore[Tx], decide func(storetest.Call) storetest.Fault) store.TxStore[Tx] {
	f := storetest.NewFaultyTx(s, decide)
	if _, ok := s.(store.Dequeuer); !ok {
		return f.Plain()
	}
	return f
}

// faultyRunner is faulty for a store without transactions.
func faultyRunner(s store.Store, decide func(storetest.Call) storetest.Fault) store.Store {
	f := storetest.NewFaulty(s, decide)
	if _, ok := s.(store.Dequeuer); !ok {
		return f.Plain()
	}
	return f
}

// gone is what a dead process's call meets. A write finds no record, rather than getting no
// answer, because an engine repeats a write without an answer for seconds.
func gone(c storetest.Call) storetest.Fault {
	switch c.Method {
	case "Swap", "SwapTx", "SwapNoted", "Get":
		return storetest.Fault{Result: &store.SwapResult{}}
	default:
		return storetest.Fault{Before: errCrashed}
	}
}

// claims reports whether the call claims a record.
func claims(c storetest.Call) bool {
	return c.Method == "Dequeue" || slices.ContainsFunc(c.Changes, func(change store.Change) bool {
		return change.To.State == store.InProgress && change.If != change.To.Token
	})
}

// ends reports whether the call ends an attempt.
func ends(c storetest.Call) bool {
	return c.Method == "Atomic" || slices.ContainsFunc(c.Changes, func(change store.Change) bool {
		return change.If.State == store.InProgress && change.To.State != store.InProgress
	})
}
