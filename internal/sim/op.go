package sim

import "github.com/semelgo/semel/store"

// opKind is the kind of a call to the store or to a receiver.
type opKind uint8

const (
	opSwap opKind = iota + 1
	opGet
	opScan
	opPurge
	opBegin  // of a transaction
	opCommit // its last statement, and the commit behind it
	opEffect // the effect, outside
	opRaise  // the fence at the receiver
	opLook   // for evidence, at the receiver
	opDequeue
	opBatch       // a change and statements, all together
	opSwapTx      // of another record, in a transaction
	opWait        // for a result that another actor of the process requests
	opStart       // helping the others of its process
	opPause       // before it sends a request
	opWriteBatch  // what came, or joined, in one transaction
	opCommitBatch // its commit
	opKinds
)

func (k opKind) String() string {
	return [opKinds]string{"", "swap", "get", "scan", "purge", "begin", "commit", "act", "raise", "look", "dequeue", "send together", "enqueue", "wait for the others", "begin", "ask", "write together", "commit together"}[k]
}

// op is one call, before which an actor stops.
type op struct {
	kind    opKind
	row     int // which record it is about
	change  store.Change
	hold    bool
	again   bool // a dequeue that only reads what an earlier one claimed
	session *session
	attempt grant          // the attempt of the effect or of the fence
	batch   []store.Change // all changes of a swap that is sent for other actors too
	settled func() bool    // what is waited for is there
}

// callResult says what happens to a call.
type callResult uint8

const (
	// resultOK: the call is executed and answered.
	resultOK callResult = iota
	// resultLost: the call never arrives; the caller gets an error.
	resultLost
	// resultReplyLost: the call is executed and its reply is lost; the caller gets an error.
	resultReplyLost
	// resultLate: the caller gets an error, and the call may still arrive at any time.
	resultLate
	// resultAborted: a commit that certainly did not happen.
	resultAborted
	// resultConflict: a commit that the database aborted because of other transactions.
	resultConflict
	// resultUnknown: a commit without an answer, its last statement still on its
	// way.
	resultUnknown
	// resultUnknownLocked: a commit without an answer, its last statement carried out and
	// holding the record, the decision still to come.
	resultUnknownLocked
	// resultRefused: the receiver rejects the call, and remembers nothing.
	resultRefused
	// resultForbidden: the receiver rejects the call, which is the operation's answer.
	resultForbidden
	// resultDead: the caller has crashed.
	resultDead
	callResults
)

func (h callResult) String() string {
	return [callResults]string{
		"", "never arrives", "its answer is lost", "is late", "is rolled back", "is aborted by a conflict", "has no answer",
		"has no answer and holds the record", "is refused", "is refused for good",
		"belongs to a ghost",
	}[h]
}

// writes reports whether the call changes anything.
func (o *op) writes() bool {
	k := o.kind
	return k == opSwap || k == opEffect || k == opRaise || k == opPurge || k == opDequeue && !o.again
}

// outcomes lists the results of o that the budget allows, with resultOK first.
func (o *op) outcomes(b *Budget, soft bool, into []callResult) []callResult {
	into = append(into, resultOK)
	if o.kind == opWait || o.kind == opStart || o.kind == opPause {
		return into
	}
	if o.kind == opSwapTx {
		return into
	}
	if o.kind == opWriteBatch || o.kind == opCommitBatch {
		return o.batchOutcomes(b, into)
	}
	if o.kind == opCommit || o.kind == opBatch {
		if b.Aborts > 0 {
			into = append(into, resultAborted)
		}
		if b.Conflicts > 0 {
			into = append(into, resultConflict)
		}
		if b.Unknown > 0 {
			into = append(into, resultUnknown)
			if !o.session.hold || soft {
				into = append(into, resultUnknownLocked)
			}
		}
		if o.kind == opBatch && b.Lost > 0 {
			into = append(into, resultLost)
		}
		return into
	}
	if o.kind == opEffect && b.Refusals > 0 {
		into = append(into, resultRefused, resultForbidden)
	}
	if b.Lost == 0 {
		return into
	}
	into = append(into, resultLost)
	if o.writes() {
		into = append(into, resultReplyLost)
	}
	if o.writes() && o.kind != opRaise && o.kind != opPurge {
		into = append(into, resultLate)
	}
	return into
}

// batchOutcomes adds the other results of a joinable batch.
func (o *op) batchOutcomes(b *Budget, into []callResult) []callResult {
	if o.kind == opWriteBatch {
		if b.Lost > 0 {
			into = append(into, resultLost)
		}
		return into
	}
	if b.Aborts > 0 {
		into = append(into, resultAborted)
	}
	if b.Unknown > 0 {
		into = append(into, resultUnknown)
	}
	return into
}

// Budget limits the faults of one run.
type Budget struct {
	Crashes   int // of actors
	Expiries  int // of leases
	Unknown   int // commits without an answer
	Aborts    int // commits that are certainly rolled back
	Lost      int // other calls without an answer
	Refusals  int // effects that the receiver refuses, or the operation itself
	Purges    int // retentions that pass
	Renewals  int // heartbeats that come after the lease is over
	Delays    int // of waiting records, that pass
	Tokens    int // one-time tokens whose time passes
	Cancels   int // callers that cancel while their claim is in flight
	CacheAges int // times that more than half of the memory's age passes
	// Conflicts are transactions that are given up for others and run again. The
	// engine rests before it does, which takes real time: have few.
	Conflicts int
}

// spend takes h from the budget.
func (b *Budget) spend(h callResult) {
	switch h {
	case resultLost, resultReplyLost, resultLate:
		b.Lost--
	case resultAborted:
		b.Aborts--
	case resultConflict:
		b.Conflicts--
	case resultUnknown, resultUnknownLocked:
		b.Unknown--
	case resultRefused, resultForbidden:
		b.Refusals--
	case resultOK, resultDead, callResults:
	}
}

func (b *Budget) digest(d digest) digest {
	for _, n := range [...]int{b.Crashes, b.Expiries, b.Unknown, b.Aborts, b.Lost, b.Refusals, b.Purges, b.Renewals, b.Delays, b.Tokens, b.Conflicts, b.Cancels, b.CacheAges} {
		d = d.add(uint64(n))
	}
	return d
}
